#include "services/common/rpc/caller.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/authority.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-00112233.muster";

// The calls of relays on behalf of node n1.
class CallerResolverTest : public ::testing::Test {
 protected:
  static std::string UriOf(const std::string& path) {
    return absl::StrCat("spiffe://", kFleet, "/", path);
  }

  // Returns the statement that the node signs for a relay now.
  std::string Sign(const std::string& relay, absl::Duration lasts = absl::Minutes(50)) const {
    return SignAttachStatement(key_, chain_, UriOf("node/n1"), UriOf("service/relay/" + relay),
                               std::string(32, 'k'), clock_.Now() + lasts)
        ->SerializeAsString();
  }

  std::string Refusal(const std::string& statement, const std::string& node = "n1") {
    return ReasonOf(callers_.ResolveForwarded(relay_, UriOf("node/" + node), statement).status());
  }

  FakeClock clock_;
  const absl::Time now_ = clock_.Now();
  const FleetRoot root_ = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_);
  const PrivateKey intermediate_key_ = *PrivateKey::Generate();
  const Intermediate intermediate_ = *Intermediate::Load(
      kFleet, intermediate_key_, *root_.SignIntermediate(intermediate_key_.public_key(), now_),
      root_.certificate());
  const PrivateKey key_ = *PrivateKey::Generate();
  const std::string chain_ = ChainToPem(std::vector<Certificate>{
      *intermediate_.Issue(NodeIdentity{"n1"}, key_.public_key(), {}, now_, now_ + absl::Hours(24)),
      intermediate_.certificate()});
  // Forwards the calls: an ancestor of every relay that the statements name.
  const Caller relay_ = {{kFleet, ServiceIdentity{ServiceRole::kRelay, "root"}},
                         std::nullopt,
                         "issuer",
                         "serial",
                         "",
                         ""};
  VerifiedChains chains_{[this] { return std::vector<Certificate>{root_.certificate()}; }, clock_};
  CallerResolver callers_{kFleet, clock_, &chains_};
};

TEST_F(CallerResolverTest, StatementMakesTheRelayActForTheNode) {
  const auto forwarded = callers_.ResolveForwarded(relay_, UriOf("node/n1"), Sign("r1"));
  ASSERT_TRUE(forwarded.ok()) << forwarded.status();
  EXPECT_EQ(forwarded->caller->identity, (Identity{kFleet, NodeIdentity{"n1"}}));
  EXPECT_EQ(forwarded->caller->via, relay_.identity);
  EXPECT_EQ(forwarded->caller->serial, "serial");
  EXPECT_EQ(forwarded->caller->statement_serial, Certificate::FromPem(chain_)->Serial());
  EXPECT_EQ(forwarded->parent, "r1");
  EXPECT_EQ(absl::ToUnixSeconds(forwarded->expires), absl::ToUnixSeconds(now_ + absl::Minutes(50)));
}

TEST_F(CallerResolverTest, StatementOfAnotherNodeOrOfNoneIsRefused) {
  EXPECT_EQ(Refusal(Sign("r1"), "n2"), "IDENTITY_NOT_FORWARDABLE");
  EXPECT_EQ(Refusal("nonsense"), "IDENTITY_NOT_FORWARDABLE");
  CallerResolver none(kFleet, clock_);
  EXPECT_EQ(ReasonOf(none.ResolveForwarded(relay_, UriOf("node/n1"), Sign("r1")).status()),
            "IDENTITY_NOT_FORWARDABLE");
}

TEST_F(CallerResolverTest, RememberedStatementEndsWithItsExpiry) {
  const std::string statement = Sign("r1");
  EXPECT_EQ(Refusal(statement), "");
  clock_.Advance(absl::Minutes(49));
  EXPECT_EQ(Refusal(statement), "");
  clock_.Advance(absl::Minutes(2));
  EXPECT_EQ(Refusal(statement), "IDENTITY_NOT_FORWARDABLE");
}

TEST_F(CallerResolverTest, FormerParentIsRefusedAfterANewerStatement) {
  const std::string former = Sign("r1");
  EXPECT_EQ(Refusal(former), "");
  clock_.Advance(absl::Minutes(10));
  EXPECT_EQ(Refusal(Sign("r2")), "");
  EXPECT_EQ(Refusal(former), "NOT_ATTACHED");
  EXPECT_EQ(Refusal(Sign("r1")), "") << "the node returned";
}

TEST_F(CallerResolverTest, FormerParentThatWasNeverSeenIsRefused) {
  const std::string former = Sign("r1");
  clock_.Advance(absl::Minutes(10));
  EXPECT_EQ(Refusal(Sign("r2")), "");
  EXPECT_EQ(Refusal(former), "NOT_ATTACHED");
}

// The former parent may get one more statement while the node attaches to the new one.
TEST_F(CallerResolverTest, StatementsOfAMoveAreBothAccepted) {
  const std::string preferred = Sign("r2");
  clock_.Advance(absl::Seconds(20));
  EXPECT_EQ(Refusal(Sign("r1")), "");
  EXPECT_EQ(Refusal(preferred), "");
}

TEST_F(CallerResolverTest, OlderStatementForTheSameParentIsAccepted) {
  const std::string older = Sign("r1");
  clock_.Advance(absl::Minutes(25));
  EXPECT_EQ(Refusal(Sign("r1")), "");
  EXPECT_EQ(Refusal(older), "");
}

}  // namespace
}  // namespace muster
