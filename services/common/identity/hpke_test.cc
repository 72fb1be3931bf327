#include "services/common/identity/hpke.h"

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

std::string Hex(const char* text) { return absl::HexStringToBytes(text); }

// RFC 9180, A.1.1: the first encryption.
const std::string kEphemeral =
    Hex("52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736");
const std::string kReceiver =
    Hex("4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8");
const std::string kReceiverPublic =
    Hex("3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d");
const std::string kEncapsulated =
    Hex("37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431");
const std::string kInfo = Hex("4f6465206f6e2061204772656369616e2055726e");
const std::string kAssociated = Hex("436f756e742d30");
const std::string kPlain = Hex("4265617574792069732074727574682c20747275746820626561757479");
const std::string kSealed = Hex(
    "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a");

TEST(HpkeTest, SealReturnsTheVectorOfTheStandard) {
  const auto message =
      HpkeSeal(*HpkeKey::FromBytes(kEphemeral), kReceiverPublic, kInfo, kAssociated, kPlain);
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->encapsulated_key, kEncapsulated);
  EXPECT_EQ(absl::BytesToHexString(message->sealed), absl::BytesToHexString(kSealed));
}

TEST(HpkeTest, OpenReadsTheVectorOfTheStandard) {
  const auto key = HpkeKey::FromBytes(kReceiver);
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(key->public_key(), kReceiverPublic);
  const auto plain = HpkeOpen(*key, {kEncapsulated, kSealed}, kInfo, kAssociated);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->view(), kPlain);
}

TEST(HpkeTest, OnlyTheReceiverOpensAnUnchangedMessageWithItsData) {
  const HpkeKey key = *HpkeKey::Generate();
  const HpkeMessage message = *HpkeSeal(key.public_key(), "info", "associated", "value");
  EXPECT_EQ(HpkeOpen(key, message, "info", "associated")->view(), "value");
  const auto reason = [&](const HpkeKey& with, const HpkeMessage& opened, const char* info,
                          const char* associated) {
    return ReasonOf(HpkeOpen(with, opened, info, associated).status());
  };
  EXPECT_EQ(reason(*HpkeKey::Generate(), message, "info", "associated"), "SEALED_MESSAGE_DAMAGED");
  EXPECT_EQ(reason(key, message, "other", "associated"), "SEALED_MESSAGE_DAMAGED");
  EXPECT_EQ(reason(key, message, "info", "other"), "SEALED_MESSAGE_DAMAGED");
  HpkeMessage changed = message;
  changed.sealed.back() = static_cast<char>(changed.sealed.back() ^ 1);
  EXPECT_EQ(reason(key, changed, "info", "associated"), "SEALED_MESSAGE_DAMAGED");
  changed = *HpkeSeal(key.public_key(), "info", "associated", "value");
  EXPECT_NE(changed.encapsulated_key, message.encapsulated_key);
  changed.encapsulated_key = message.encapsulated_key;
  EXPECT_EQ(reason(key, changed, "info", "associated"), "SEALED_MESSAGE_DAMAGED");
  EXPECT_EQ(reason(key, {"short", message.sealed}, "info", "associated"), "SEALED_MESSAGE_DAMAGED");
}

TEST(HpkeTest, KeyOfLowOrderOrWrongSizeIsRefused) {
  EXPECT_EQ(ReasonOf(HpkeSeal(std::string(32, '\0'), "", "", "value").status()), "KEY_MALFORMED");
  EXPECT_EQ(ReasonOf(HpkeSeal(std::string(31, 'k'), "", "", "value").status()), "KEY_MALFORMED");
}

}  // namespace
}  // namespace muster
