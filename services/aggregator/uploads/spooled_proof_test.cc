#include "services/aggregator/uploads/spooled_proof.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "services/aggregator/testing/test_state.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/result_signature.h"

namespace muster {
namespace {

using testing::kFleet;
using testing::TestState;

constexpr absl::Duration kLifetime = absl::Hours(24);

const Caller kRelay = {.identity = {kFleet, ServiceIdentity{ServiceRole::kRelay, "r1"}}};

// The node's certificate has expired since it signed.
class SpooledProofTest : public ::testing::Test {
 protected:
  void SetUp() override {
    JoinTokenRecord token;
    token.id = "t";
    token.node = "n1";
    token.count = 10;
    token.created_at = absl::ToUnixMicros(enrolled_);
    token.expires_at = absl::ToUnixMicros(now_.Now() + absl::Hours(1));
    state_.Apply(CreateJoinToken{token});
    Join(enrolled_, "first");
    proof_.set_size(5);
    proof_.set_sha256(DigestBytes(Sha256::Of("hello")));
    const auto leaf = *intermediate_.Issue(NodeIdentity{"n1"}, key_.public_key(), {}, enrolled_,
                                           enrolled_ + kLifetime);
    proof_.mutable_signature()->set_certificate_chain_pem(
        ChainToPem(std::vector<Certificate>{leaf, intermediate_.certificate()}));
    proof_.mutable_signature()->set_value(
        *SignResult(key_, {kRun, "facts", "n1", 1, proof_.size(), proof_.sha256(), false,
                           upload_.media_type, upload_.file_name}));
    proof_.mutable_accept_time()->set_seconds(absl::ToUnixSeconds(enrolled_ + absl::Hours(1)));
  }

  void Join(absl::Time at, const std::string& key) {
    JoinNode join;
    join.token = "t";
    join.key_sha256 = key;
    join.name = "n1";
    join.issued.uri = "spiffe://f.muster/node/n1";
    join.issued.issuer = "i";
    join.issued.serial = key;
    join.issued.issued_at = absl::ToUnixMicros(at);
    join.issued.expires_at = absl::ToUnixMicros(at + kLifetime);
    EXPECT_EQ(state_.Apply(join).verdict, JoinNode::Verdict::kJoined);
  }

  std::string Check() {
    const absl::Status status = proofs_.Check(proof_, kRelay, &upload_);
    if (!status.ok()) return ReasonOf(status);
    EXPECT_EQ(upload_.delivery.uri, "spiffe://f.muster/node/n1");
    return "";
  }

  TestState state_;
  FakeClock now_{absl::Now()};
  const absl::Time enrolled_ = now_.Now() - absl::Hours(24 * 6);
  const PrivateKey key_ = *PrivateKey::Generate();
  const FleetRoot root_ = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), enrolled_);
  const PrivateKey intermediate_key_ = *PrivateKey::Generate();
  const Intermediate intermediate_ = *Intermediate::Load(
      kFleet, intermediate_key_, *root_.SignIntermediate(intermediate_key_.public_key(), enrolled_),
      root_.certificate());
  UploadRecord upload_ = {.key = KeyOf("n1"),
                          .attempt = 1,
                          .media_type = "application/json",
                          .file_name = "facts.json"};
  v1::SpooledProof proof_;
  SpooledProofs proofs_{kFleet, root_.certificate(), state_.store(), now_,
                        [](const Caller&) { return false; }};
};

TEST_F(SpooledProofTest, EnrolledNodeDeliversWithAnExpiredCertificate) { EXPECT_EQ(Check(), ""); }

// The relay presents a result as an error.
TEST_F(SpooledProofTest, ProofOfAResultIsNoProofOfAnError) {
  proof_.set_is_error(true);
  EXPECT_EQ(Check(), "INVALID_SIGNATURE");
}

TEST_F(SpooledProofTest, ProofCoversMediaTypeAndFileName) {
  upload_.media_type = "application/gzip";
  EXPECT_EQ(Check(), "INVALID_SIGNATURE");
  upload_.media_type = "application/json";
  upload_.file_name = "other.json";
  EXPECT_EQ(Check(), "INVALID_SIGNATURE");
}

// The empty lines are no fault of the certificates: only their size is.
TEST_F(SpooledProofTest, ProofWithCertificatesAboveTheirLimitFails) {
  proof_.mutable_signature()->mutable_certificate_chain_pem()->append(16 * 1024, '\n');
  EXPECT_EQ(Check(), "INVALID_SIGNATURE");
}

TEST_F(SpooledProofTest, RevokedNodeFailsAlthoughItsCertificateHasExpired) {
  state_.Apply(RevokeNode{.name = "n1", .at = absl::ToUnixMicros(now_.Now())});
  EXPECT_EQ(Check(), "REVOKED");
}

TEST_F(SpooledProofTest, MachineThatWasReplacedFails) {
  Join(enrolled_ + absl::Hours(48), "second");
  EXPECT_EQ(Check(), "REVOKED");
}

TEST_F(SpooledProofTest, NodeThatWasRemovedFails) {
  state_.Apply(RemoveNode{.name = "n1", .at = absl::ToUnixMicros(now_.Now())});
  EXPECT_EQ(Check(), "REVOKED");
}

TEST_F(SpooledProofTest, ProofThatIsTooOldFails) {
  now_.Advance(absl::Hours(24 * 9));
  EXPECT_EQ(Check(), "PROOF_TOO_OLD");
}

}  // namespace
}  // namespace muster
