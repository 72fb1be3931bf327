#include "services/common/upload/delivery_signature.h"

#include <gtest/gtest.h>

#include <string>

#include "services/common/base/error.h"

namespace muster {
namespace {

v1::Signature Sized(size_t value, size_t chain) {
  v1::Signature signature;
  signature.set_value(std::string(value, 'x'));
  signature.set_certificate_chain_pem(std::string(chain, 'x'));
  return signature;
}

TEST(ValidateSignatureTest, SignatureWithinItsLimitsIsAccepted) {
  EXPECT_TRUE(ValidateSignature({}).ok());
  EXPECT_TRUE(ValidateSignature(Sized(kMaxResultSignature, kMaxSignerChainPem)).ok());
}

TEST(ValidateSignatureTest, SignatureAboveItsLimitsFails) {
  for (const v1::Signature& signature :
       {Sized(kMaxResultSignature + 1, 1), Sized(1, kMaxSignerChainPem + 1)}) {
    const absl::Status refused = ValidateSignature(signature);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_EQ(ReasonOf(refused), "INVALID_SIGNATURE");
  }
}

TEST(ValidateSignatureTest, CertificatesWithoutASignatureFail) {
  EXPECT_TRUE(absl::IsInvalidArgument(ValidateSignature(Sized(0, 1))));
}

}  // namespace
}  // namespace muster
