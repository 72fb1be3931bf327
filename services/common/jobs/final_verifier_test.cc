#include "services/common/jobs/final_verifier.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/identity/authority.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-00112233.muster";

class FinalVerifierTest : public ::testing::Test {
 protected:
  v1::JobRecord Signed(const std::string& node, const std::string& job = "j1") const {
    const Certificate leaf = *intermediate_.Issue(NodeIdentity{node}, key_.public_key(), {}, now_,
                                                  now_ + absl::Hours(1));
    const std::string chain =
        ChainToPem(std::vector<Certificate>{leaf, intermediate_.certificate()});
    v1::JobRecord record;
    record.set_job(job);
    record.set_node(node);
    record.set_sequence(1);
    record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
    RecordsDigest digest;
    digest.Add(record);
    *record.mutable_final()->mutable_signature() = *SignFinal(key_, chain, kFleet, record, digest);
    return record;
  }

  FakeClock clock_;
  const absl::Time now_ = clock_.Now();
  const FleetRoot root_ = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_);
  const PrivateKey intermediate_key_ = *PrivateKey::Generate();
  const Intermediate intermediate_ = *Intermediate::Load(
      kFleet, intermediate_key_, *root_.SignIntermediate(intermediate_key_.public_key(), now_),
      root_.certificate());
  const PrivateKey key_ = *PrivateKey::Generate();
  std::vector<Certificate> roots_ = {root_.certificate()};
  FinalVerifier verifier_{kFleet, [this] { return roots_; }, clock_};
};

TEST_F(FinalVerifierTest, ChainIsVerifiedOnceAndEachSignatureAlways) {
  const v1::JobRecord first = Signed("n1");
  v1::JobRecord second = first;
  EXPECT_EQ(verifier_.Verify(first), absl::OkStatus());
  EXPECT_EQ(verifier_.size(), 1u);
  second.set_job("j2");
  EXPECT_EQ(ReasonOf(verifier_.Verify(second)), "SIGNATURE_INVALID");
  second = first;
  second.set_node("n2");
  EXPECT_EQ(ReasonOf(verifier_.Verify(second)), "SIGNATURE_INVALID");
  EXPECT_EQ(verifier_.Verify(first), absl::OkStatus());
  EXPECT_EQ(verifier_.size(), 1u);
}

TEST_F(FinalVerifierTest, RememberedChainEndsWithItsCertificate) {
  const v1::JobRecord record = Signed("n1");
  EXPECT_EQ(verifier_.Verify(record), absl::OkStatus());
  clock_.Advance(absl::Hours(2));
  EXPECT_EQ(ReasonOf(verifier_.Verify(record)), "SIGNATURE_INVALID");
}

TEST_F(FinalVerifierTest, RememberedChainEndsWithItsRoot) {
  const v1::JobRecord record = Signed("n1");
  EXPECT_EQ(verifier_.Verify(record), absl::OkStatus());
  roots_ = {FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_)->certificate()};
  EXPECT_EQ(ReasonOf(verifier_.Verify(record)), "SIGNATURE_INVALID");
  EXPECT_EQ(verifier_.size(), 0u);
}

}  // namespace
}  // namespace muster
