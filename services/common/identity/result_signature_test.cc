#include "services/common/identity/result_signature.h"

#include <string>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/identity/authority.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-00112233.muster";
constexpr char kRun[] = "0123456789abcdef";

class ResultSignatureTest : public ::testing::Test {
 protected:
  ResultSignatureTest()
      : root_(*FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_)),
        intermediate_key_(*PrivateKey::Generate()),
        intermediate_(*Intermediate::Load(
            kFleet, intermediate_key_,
            *root_.SignIntermediate(intermediate_key_.public_key(), now_), root_.certificate())),
        authority_(*intermediate_.CreateRunAuthority(kRun, now_, now_ + absl::Hours(2))) {}

  std::string ChainFor(const RunName& name) {
    const Certificate leaf = *authority_.Issue(name, key_.public_key(), {}, now_);
    return ChainToPem(
        std::vector<Certificate>{leaf, authority_.fleet_signed(), intermediate_.certificate()});
  }

  absl::Status Verify(const std::string& signature, const std::string& chain,
                      const SignedResult& result) {
    return VerifyResultSignature(signature, chain, result, kFleet, root_.certificate(), now_);
  }

  const absl::Time now_ = absl::Now();
  const FleetRoot root_;
  const PrivateKey intermediate_key_;
  const Intermediate intermediate_;
  const RunAuthority authority_;
  const PrivateKey key_ = *PrivateKey::Generate();
  const SignedResult result_ = {kRun, "facts", "n1", 1, 3, std::string(32, '\x07')};
};

TEST_F(ResultSignatureTest, SignatureOfTheNodeIsAccepted) {
  const std::string signature = *SignResult(key_, result_);
  EXPECT_TRUE(Verify(signature, ChainFor(RunNodeIdentity{kRun, "facts", "n1"}), result_).ok());
  EXPECT_TRUE(Verify(signature, ChainFor(RunPluginIdentity{kRun, "facts"}), result_).ok());
}

TEST_F(ResultSignatureTest, ChangedResultIsRefused) {
  const std::string signature = *SignResult(key_, result_);
  const std::string chain = ChainFor(RunNodeIdentity{kRun, "facts", "n1"});
  SignedResult changed = result_;
  changed.sha256[0] = 'x';
  EXPECT_EQ(ReasonOf(Verify(signature, chain, changed)), "INVALID_SIGNATURE");
  changed = result_;
  changed.attempt = 2;
  EXPECT_EQ(ReasonOf(Verify(signature, chain, changed)), "INVALID_SIGNATURE");
  changed = result_;
  changed.is_error = true;
  EXPECT_EQ(ReasonOf(Verify(signature, chain, changed)), "INVALID_SIGNATURE");
}

TEST_F(ResultSignatureTest, SignatureOfAnotherNodeIsRefused) {
  const std::string signature = *SignResult(key_, result_);
  const absl::Status status =
      Verify(signature, ChainFor(RunNodeIdentity{kRun, "facts", "n2"}), result_);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(ResultSignatureTest, ForeignChainIsRefused) {
  const FleetRoot other = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_);
  const std::string signature = *SignResult(key_, result_);
  EXPECT_FALSE(VerifyResultSignature(signature, ChainFor(RunNodeIdentity{kRun, "facts", "n1"}),
                                     result_, kFleet, other.certificate(), now_)
                   .ok());
}

}  // namespace
}  // namespace muster
