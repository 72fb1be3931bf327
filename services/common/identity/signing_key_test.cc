#include "services/common/identity/signing_key.h"

#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/identity/key.h"

namespace muster {
namespace {

TEST(SigningKeyTest, WhatItSignsIsVerifiedByItsPublicHalfAlone) {
  const SigningKey key = *SigningKey::Generate();
  const std::string signature = *key.Sign("message");
  EXPECT_TRUE(key.public_key().Verify("message", signature));
  EXPECT_FALSE(key.public_key().Verify("massage", signature));
  EXPECT_FALSE(SigningKey::Generate()->public_key().Verify("message", signature));
}

TEST(SigningKeyTest, ASignatureOfAnotherLengthIsNone) {
  const SigningKey key = *SigningKey::Generate();
  const std::string signature = *key.Sign("message");
  EXPECT_FALSE(key.public_key().Verify("message", signature.substr(1)));
  EXPECT_FALSE(key.public_key().Verify("message", signature + "x"));
  EXPECT_FALSE(key.public_key().Verify("message", ""));
}

TEST(SigningKeyTest, BothHalvesAreWrittenAndRead) {
  const SigningKey key = *SigningKey::Generate();
  const auto again = SigningKey::FromPem(key.ToPem()->view());
  ASSERT_TRUE(again.ok()) << again.status();
  const auto half = SigningPublicKey::FromPem(*key.public_key().ToPem());
  ASSERT_TRUE(half.ok()) << half.status();
  EXPECT_TRUE(half->Verify("message", *again->Sign("message")));
}

TEST(SigningKeyTest, KeysOfOtherKindsAreRefused) {
  const PrivateKey other = *PrivateKey::Generate();
  EXPECT_EQ(ReasonOf(SigningKey::FromPem(other.ToPkcs8Pem()->view()).status()), "INVALID_KEY");
  EXPECT_EQ(ReasonOf(SigningPublicKey::FromPem(*other.public_key().ToPem()).status()),
            "INVALID_KEY");
  EXPECT_EQ(ReasonOf(SigningPublicKey::FromPem("no key").status()), "INVALID_KEY");
  EXPECT_EQ(ReasonOf(SigningPublicKey::FromPem(std::string(17 << 10, 'a')).status()),
            "INVALID_KEY");
}

}  // namespace
}  // namespace muster
