#include "services/common/identity/attach_statement.h"

#include <array>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/identity/authority.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-00112233.muster";
constexpr char kChild[] = "spiffe://fleet-00112233.muster/node/n1";
constexpr char kRelay[] = "spiffe://fleet-00112233.muster/service/relay/r1";

class AttachStatementTest : public ::testing::Test {
 protected:
  AttachStatementTest()
      : root_(*FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_)),
        intermediate_key_(*PrivateKey::Generate()),
        intermediate_(*Intermediate::Load(
            kFleet, intermediate_key_,
            *root_.SignIntermediate(intermediate_key_.public_key(), now_), root_.certificate())) {}

  std::string ChainFor(const FleetName& name) {
    const Certificate leaf =
        *intermediate_.Issue(name, key_.public_key(), {}, now_, now_ + absl::Minutes(50));
    return ChainToPem(std::vector<Certificate>{leaf, intermediate_.certificate()});
  }

  v1::AttachStatement Sign(absl::Duration lasts = absl::Minutes(40)) {
    return *SignAttachStatement(key_, ChainFor(NodeIdentity{"n1"}), kChild, kRelay, relay_key_,
                                now_ + lasts);
  }

  absl::StatusOr<VerifiedStatement> Verify(const v1::AttachStatement& statement) {
    const std::array<Certificate, 1> roots = {root_.certificate()};
    return VerifyAttachStatement(statement, kFleet, roots, now_);
  }

  std::string Refusal(const v1::AttachStatement& statement) {
    const absl::Status status = Verify(statement).status();
    EXPECT_EQ(ReasonOf(status), "STATEMENT_REFUSED") << status;
    return std::string(status.message());
  }

  const absl::Time now_ = absl::Now();
  const FleetRoot root_;
  const PrivateKey intermediate_key_;
  const Intermediate intermediate_;
  const PrivateKey key_ = *PrivateKey::Generate();
  const std::string relay_key_ = *PrivateKey::Generate()->public_key().Sha256();
};

TEST_F(AttachStatementTest, TextMatchesApi) {
  EXPECT_EQ(AttachStatementText("a", "b", "\x01\xff", absl::FromUnixSeconds(7)),
            "muster-attach-v1\na\nb\n01ff\n7\n");
}

TEST_F(AttachStatementTest, StatementOfNodeIsAccepted) {
  const v1::AttachStatement statement = Sign();
  const auto verified = Verify(statement);
  ASSERT_TRUE(verified.ok()) << verified.status();
  const auto leaf = Certificate::FromPem(statement.certificate_chain_pem());
  EXPECT_EQ(*ToUri(verified->child), kChild);
  EXPECT_EQ(verified->relay, (ServiceIdentity{ServiceRole::kRelay, "r1"}));
  EXPECT_EQ(verified->relay_key_sha256, relay_key_);
  EXPECT_EQ(absl::ToUnixSeconds(verified->expires), absl::ToUnixSeconds(now_ + absl::Minutes(40)));
  EXPECT_EQ(verified->issuer, leaf->IssuerKeyId());
  EXPECT_EQ(verified->serial, leaf->Serial());
}

TEST_F(AttachStatementTest, StatementOfRelayIsAccepted) {
  const std::string child = "spiffe://fleet-00112233.muster/service/relay/r2";
  const auto statement =
      SignAttachStatement(key_, ChainFor(ServiceIdentity{ServiceRole::kRelay, "r2"}), child, kRelay,
                          relay_key_, now_ + absl::Minutes(40));
  EXPECT_TRUE(Verify(*statement).ok()) << Verify(*statement).status();
}

TEST_F(AttachStatementTest, StatementForAnotherKeyRelayOrChildIsRefused) {
  v1::AttachStatement statement = Sign();
  statement.set_relay_key_sha256(*PrivateKey::Generate()->public_key().Sha256());
  EXPECT_NE(Refusal(statement).find("signature"), std::string::npos);
  statement = Sign();
  statement.set_relay("spiffe://fleet-00112233.muster/service/relay/r2");
  EXPECT_NE(Refusal(statement).find("signature"), std::string::npos);
  statement = Sign();
  statement.set_child("spiffe://fleet-00112233.muster/node/n2");
  EXPECT_NE(Refusal(statement).find("the child did not sign it"), std::string::npos);
}

TEST_F(AttachStatementTest, ChangedSignatureIsRefused) {
  v1::AttachStatement statement = Sign();
  statement.mutable_signature()->back() ^= 1;
  EXPECT_NE(Refusal(statement).find("signature"), std::string::npos);
  statement.clear_signature();
  EXPECT_NE(Refusal(statement).find("signature"), std::string::npos);
}

TEST_F(AttachStatementTest, ExpiredTooLongOrOutlivingStatementIsRefused) {
  EXPECT_NE(Refusal(Sign(-absl::Seconds(2))).find("expired"), std::string::npos);
  EXPECT_NE(Refusal(Sign(absl::Minutes(66))).find("an hour"), std::string::npos);
  EXPECT_NE(Refusal(Sign(absl::Minutes(55))).find("outlives"), std::string::npos);
}

TEST_F(AttachStatementTest, StatementThatDoesNotFitIntoTheMetadataOfACallIsRefused) {
  const std::string chain = ChainFor(NodeIdentity{"n1"});
  const auto sign = [&](size_t text) {
    return SignAttachStatement(key_, chain + std::string(text, '#'), kChild, kRelay, relay_key_,
                               now_ + absl::Minutes(40));
  };
  v1::AttachStatement statement = *sign(kMaxAttachStatement - 10 - Sign().ByteSizeLong());
  EXPECT_TRUE(Verify(statement).ok()) << Verify(statement).status();
  statement.mutable_certificate_chain_pem()->append(20, '#');
  EXPECT_NE(Refusal(statement).find("the limit is 5120"), std::string::npos);
  EXPECT_EQ(ReasonOf(sign(kMaxAttachStatement).status()), "STATEMENT_REFUSED");
  statement = Sign();
  statement.GetReflection()
      ->MutableUnknownFields(&statement)
      ->AddLengthDelimited(100, std::string(kMaxAttachStatement, 'x'));
  EXPECT_NE(Refusal(statement).find("the limit is 5120"), std::string::npos);
}

TEST_F(AttachStatementTest, LongestNamesFitIntoAStatement) {
  const std::string name(253, 'n');
  const std::string child = *ToUri({kFleet, NodeIdentity{name}});
  const std::string relay = *ToUri({kFleet, ServiceIdentity{ServiceRole::kRelay, name}});
  const std::string root = root_.certificate().ToPem();
  const auto statement = SignAttachStatement(key_, ChainFor(NodeIdentity{name}) + root, child,
                                             relay, relay_key_, now_ + absl::Minutes(40));
  EXPECT_TRUE(statement.ok()) << statement.status();
}

TEST_F(AttachStatementTest, ChangedExpiryIsRefused) {
  v1::AttachStatement statement = Sign(absl::Minutes(10));
  statement.mutable_expire_time()->set_seconds(absl::ToUnixSeconds(now_ + absl::Minutes(40)));
  EXPECT_NE(Refusal(statement).find("signature"), std::string::npos);
}

TEST_F(AttachStatementTest, CertificateOfAnotherFleetIsRefused) {
  const FleetRoot other = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_);
  const std::array<Certificate, 1> roots = {other.certificate()};
  EXPECT_EQ(ReasonOf(VerifyAttachStatement(Sign(), kFleet, roots, now_).status()),
            "STATEMENT_REFUSED");
}

TEST_F(AttachStatementTest, ExpiredChainIsRefused) {
  const std::array<Certificate, 1> roots = {root_.certificate()};
  EXPECT_EQ(ReasonOf(VerifyAttachStatement(Sign(), kFleet, roots, now_ + absl::Hours(2)).status()),
            "STATEMENT_REFUSED");
}

TEST_F(AttachStatementTest, OnlyNodesAndRelaysMayAttach) {
  const std::string operators = "spiffe://fleet-00112233.muster/user/o";
  const auto statement = SignAttachStatement(key_, ChainFor(UserIdentity{"o"}), operators, kRelay,
                                             relay_key_, now_ + absl::Minutes(40));
  EXPECT_NE(Refusal(*statement).find("neither node nor relay"), std::string::npos);
}

TEST_F(AttachStatementTest, ParentMustBeAnotherRelay) {
  const std::string status = "spiffe://fleet-00112233.muster/service/status/s";
  const auto attach = [&](const FleetName& name, const std::string& child, const std::string& at) {
    return *SignAttachStatement(key_, ChainFor(name), child, at, relay_key_,
                                now_ + absl::Minutes(40));
  };
  EXPECT_NE(Refusal(attach(NodeIdentity{"n1"}, kChild, status)).find("not a relay"),
            std::string::npos);
  EXPECT_NE(Refusal(attach(ServiceIdentity{ServiceRole::kRelay, "r1"}, kRelay, kRelay))
                .find("own parent"),
            std::string::npos);
}

TEST_F(AttachStatementTest, InvalidFieldsAreRefused) {
  v1::AttachStatement statement = Sign();
  statement.set_relay_key_sha256("short");
  Refusal(statement);
  statement = Sign();
  statement.mutable_expire_time()->set_seconds(std::numeric_limits<int64_t>::max());
  Refusal(statement);
  statement = Sign();
  statement.set_certificate_chain_pem(std::string(17 << 10, 'x'));
  Refusal(statement);
  Refusal(v1::AttachStatement());
}

}  // namespace
}  // namespace muster
