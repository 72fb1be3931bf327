#include "services/common/identity/signing_key.h"

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/sha256.h"
#include "services/common/identity/key.h"

namespace muster {
namespace {

TEST(SigningKeyTest, OnlyThePublicKeyVerifiesTheSignature) {
  const SigningKey key = *SigningKey::Generate();
  const std::string signature = *key.Sign("message");
  EXPECT_TRUE(key.public_key().Verify("message", signature));
  EXPECT_FALSE(key.public_key().Verify("massage", signature));
  EXPECT_FALSE(SigningKey::Generate()->public_key().Verify("message", signature));
}

TEST(SigningKeyTest, SignatureOfAnotherLengthIsRefused) {
  const SigningKey key = *SigningKey::Generate();
  const std::string signature = *key.Sign("message");
  EXPECT_FALSE(key.public_key().Verify("message", signature.substr(1)));
  EXPECT_FALSE(key.public_key().Verify("message", signature + "x"));
  EXPECT_FALSE(key.public_key().Verify("message", ""));
}

TEST(SigningKeyTest, WrittenKeysAreReadAgain) {
  const SigningKey key = *SigningKey::Generate();
  const auto again = SigningKey::FromPem(key.ToPem()->view());
  ASSERT_TRUE(again.ok()) << again.status();
  const auto half = SigningPublicKey::FromPem(*key.public_key().ToPem());
  ASSERT_TRUE(half.ok()) << half.status();
  EXPECT_TRUE(half->Verify("message", *again->Sign("message")));
}

// Go signs commands, too (gateway/command), and is tested with the same vectors.
TEST(SigningKeyTest, SignatureMatchesTheTestVector) {
  const auto text =
      ReadFileBounded("services/common/identity/testdata/command_signature.txt", size_t{1} << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n', absl::SkipEmpty());
  const std::vector<std::string> parts = absl::StrSplit(lines.back(), ' ');
  ASSERT_EQ(parts.size(), 3u);
  // RFC 8410: the bytes before the seed in PKCS#8.
  const std::string der = *FromHex("302e020100300506032b657004220420" + parts[0]);
  const auto key = SigningKey::FromPem(absl::StrCat(
      "-----BEGIN PRIVATE KEY-----\n", absl::Base64Escape(der), "\n-----END PRIVATE KEY-----\n"));
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(ToHex(*key->Sign("muster-command-v1\n" + *FromHex(parts[1]))), parts[2]);
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
