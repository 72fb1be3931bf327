#include "services/common/rpc/caller.h"

#include <map>
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

class NoProperty final : public grpc::AuthPropertyIterator {};

// A peer that gRPC has verified.
class VerifiedPeer final : public grpc::AuthContext {
 public:
  explicit VerifiedPeer(const Certificate& certificate) : pem_(certificate.ToPem()) {}

  bool IsPeerAuthenticated() const override { return true; }
  std::vector<grpc::string_ref> GetPeerIdentity() const override { return {}; }
  std::string GetPeerIdentityPropertyName() const override { return ""; }
  std::vector<grpc::string_ref> FindPropertyValues(const std::string& name) const override {
    if (name != "x509_pem_cert") return {};
    return {grpc::string_ref(pem_.data(), pem_.size())};
  }
  grpc::AuthPropertyIterator begin() const override { return NoProperty(); }
  grpc::AuthPropertyIterator end() const override { return NoProperty(); }
  void AddProperty(const std::string&, const grpc::string_ref&) override {}
  bool SetPeerIdentityPropertyName(const std::string&) override { return false; }

 private:
  const std::string pem_;
};

// The calls of relays on behalf of node n1.
class CallerResolverTest : public ::testing::Test {
 protected:
  static std::string UriOf(const std::string& path) {
    return absl::StrCat("spiffe://", kFleet, "/", path);
  }

  Certificate Issue(const FleetName& name) const {
    return *intermediate_.Issue(name, key_.public_key(), {}, now_, now_ + absl::Hours(24));
  }

  Certificate Issue(const std::string& node) const { return Issue(NodeIdentity{node}); }

  // Returns the statement that a node signs for a relay now.
  std::string Sign(const std::string& relay, const std::string& node = "n1") const {
    const std::string chain =
        node == "n1"
            ? chain_
            : ChainToPem(std::vector<Certificate>{Issue(node), intermediate_.certificate()});
    return SignAttachStatement(key_, chain, UriOf("node/" + node), UriOf("service/relay/" + relay),
                               std::string(32, 'k'), clock_.Now() + absl::Minutes(50))
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
  const std::string chain_ =
      ChainToPem(std::vector<Certificate>{Issue("n1"), intermediate_.certificate()});
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

// The key of the waiting calls of a node contains only what has been verified.
TEST_F(CallerResolverTest, CertificateNamedByARelayIsRefused) {
  const VerifiedPeer relay(Issue(ServiceIdentity{ServiceRole::kRelay, "root"}));
  const std::string uri = UriOf("node/n1");
  const std::string statement = Sign("root");
  std::multimap<grpc::string_ref, grpc::string_ref> metadata = {{kForwardedIdentity, uri},
                                                                {kAttachStatement, statement}};
  EXPECT_TRUE(callers_.Resolve(relay, metadata).ok());
  EXPECT_EQ(ForwardedClient(metadata), uri);
  metadata.emplace(kForwardedCertificate, "ca:1");
  EXPECT_EQ(ReasonOf(callers_.Resolve(relay, metadata).status()), "IDENTITY_NOT_FORWARDABLE");
}

TEST_F(CallerResolverTest, CertificatesAndStatementsBeyondTheLimitsAreForgotten) {
  CallerResolver callers(kFleet, clock_, &chains_, {.certificates = 2, .statements = 2});
  const VerifiedPeer n1(Issue("n1"));
  const VerifiedPeer n2(Issue("n2"));
  const VerifiedPeer n3(Issue("n3"));
  const auto first = *callers.Resolve(n1, {});
  EXPECT_TRUE(callers.Resolve(n2, {}).ok());
  EXPECT_EQ(*callers.Resolve(n1, {}), first);
  EXPECT_TRUE(callers.Resolve(n3, {}).ok());
  EXPECT_NE(*callers.Resolve(n1, {}), first);

  const auto refusal = [&](const std::string& node, const std::string& statement) {
    return ReasonOf(callers.ResolveForwarded(relay_, UriOf("node/" + node), statement).status());
  };
  const std::string former = Sign("r1");
  clock_.Advance(absl::Minutes(10));
  EXPECT_EQ(refusal("n1", Sign("r2")), "");
  EXPECT_EQ(refusal("n2", Sign("r2", "n2")), "");
  EXPECT_EQ(refusal("n1", former), "NOT_ATTACHED");
  EXPECT_EQ(refusal("n3", Sign("r2", "n3")), "");
  EXPECT_EQ(refusal("n1", former), "") << "the newer statement is remembered";
}

TEST_F(CallerResolverTest, FormerParentIsRefusedAfterANewerStatement) {
  const std::string former = Sign("r1");
  EXPECT_EQ(Refusal(former), "");
  clock_.Advance(absl::Minutes(10));
  EXPECT_EQ(Refusal(Sign("r2")), "");
  EXPECT_EQ(Refusal(former), "NOT_ATTACHED");
  EXPECT_EQ(Refusal(Sign("r1")), "") << "the node returned";
}

TEST_F(CallerResolverTest, ChildHasMovedIfANewerStatementIsForAnotherParent) {
  const std::string uri = UriOf("node/n1");
  const auto resolve = [&](const std::string& statement) {
    return callers_.ResolveForwarded(relay_, uri, statement)->expires;
  };
  const std::string statement = Sign("r1");
  EXPECT_FALSE(callers_.HasMoved(uri, "r1", clock_.Now()));
  const absl::Time former = resolve(statement);
  EXPECT_FALSE(callers_.HasMoved(uri, "r1", former));
  clock_.Advance(absl::Minutes(5));
  resolve(Sign("r2"));
  EXPECT_FALSE(callers_.HasMoved(uri, "r1", former)) << "the clock of the child may be set back";
  clock_.Advance(absl::Minutes(1));
  const absl::Time newest = resolve(Sign("r2"));
  EXPECT_TRUE(callers_.HasMoved(uri, "r1", former));
  EXPECT_FALSE(callers_.HasMoved(uri, "r2", former)) << "it is for the same parent";
  EXPECT_FALSE(callers_.HasMoved(uri, "r2", newest));
  EXPECT_FALSE(callers_.HasMoved(UriOf("node/n2"), "r1", former));
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

TEST_F(CallerResolverTest, RelayProvesItsStreamByItsOwnStatement) {
  const Certificate leaf =
      *intermediate_.Issue(ServiceIdentity{ServiceRole::kRelay, "r2"}, key_.public_key(), {}, now_,
                           now_ + absl::Hours(24));
  const auto sign = [&](const std::string& parent) {
    return SignAttachStatement(
               key_, ChainToPem(std::vector<Certificate>{leaf, intermediate_.certificate()}),
               UriOf("service/relay/r2"), UriOf("service/relay/" + parent), std::string(32, 'k'),
               clock_.Now() + absl::Minutes(50))
        ->SerializeAsString();
  };
  const auto refusal = [&](const std::string& name, const std::string& statement) {
    return ReasonOf(callers_.ResolveForwardedRelay(relay_, name, statement).status());
  };
  const std::string former = sign("r1");
  EXPECT_EQ(refusal("r2", former), "");
  EXPECT_EQ(refusal("r3", former), "IDENTITY_NOT_FORWARDABLE");
  EXPECT_EQ(refusal("n1", Sign("r1")), "IDENTITY_NOT_FORWARDABLE") << "a node is no relay";
  EXPECT_EQ(ReasonOf(callers_.ResolveForwarded(relay_, UriOf("service/relay/r2"), former).status()),
            "IDENTITY_NOT_FORWARDABLE")
      << "a relay calls in its own name";
  clock_.Advance(absl::Minutes(10));
  EXPECT_EQ(refusal("r2", sign("root")), "");
  EXPECT_EQ(refusal("r2", former), "NOT_ATTACHED");
}

TEST_F(CallerResolverTest, OlderStatementForTheSameParentIsAccepted) {
  const std::string older = Sign("r1");
  clock_.Advance(absl::Minutes(25));
  EXPECT_EQ(Refusal(Sign("r1")), "");
  EXPECT_EQ(Refusal(older), "");
}

}  // namespace
}  // namespace muster
