#include "services/common/identity/share_signature.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"
#include "services/common/identity/authority.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-00112233.muster";

class ShareSignatureTest : public ::testing::Test {
 protected:
  ShareSignatureTest()
      : root_(*FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_ - absl::Hours(1))),
        intermediate_key_(*PrivateKey::Generate()),
        intermediate_(*Intermediate::Load(
            kFleet, intermediate_key_,
            *root_.SignIntermediate(intermediate_key_.public_key(), now_ - absl::Hours(1)),
            root_.certificate())) {}

  std::string ChainOf(const std::string& node, absl::Duration lasts = absl::Hours(24)) {
    const Certificate leaf =
        *intermediate_.Issue(NodeIdentity{node}, key_.public_key(), {}, now_, now_ + lasts);
    return ChainToPem(std::vector<Certificate>{leaf, intermediate_.certificate()});
  }

  v1::SharedFile Signed(const std::string& signer = "n1") {
    v1::SharedFile file;
    file.mutable_key()->set_source("n1");
    file.mutable_key()->set_target("n2");
    file.mutable_key()->set_id("facts.json");
    file.set_size(3);
    file.set_sha256(DigestBytes(Sha256::Of("abc")));
    file.mutable_sign_time()->set_seconds(absl::ToUnixSeconds(now_));
    EXPECT_TRUE(SignSharedFile(key_, ChainOf(signer), &file).ok());
    return file;
  }

  absl::Status Verify(const v1::SharedFile& file, absl::Duration later = absl::ZeroDuration()) {
    const std::vector<Certificate> roots = {root_.certificate()};
    return VerifySharedFile(file, kFleet, roots, now_ + later);
  }

  // Whole seconds, so that the validity of certificate and signature begins at the same time.
  const absl::Time now_ = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()));
  const FleetRoot root_;
  const PrivateKey intermediate_key_;
  const Intermediate intermediate_;
  const PrivateKey key_ = *PrivateKey::Generate();
};

TEST_F(ShareSignatureTest, SignatureOutlivesTheCertificate) {
  EXPECT_TRUE(Verify(Signed()).ok()) << Verify(Signed());
  EXPECT_TRUE(Verify(Signed(), absl::Hours(24 * 30)).ok());
}

TEST_F(ShareSignatureTest, ChangedFileIsRefused) {
  const std::vector<std::function<void(v1::SharedFile&)>> changes = {
      [](auto& file) { file.mutable_key()->set_target("n3"); },
      [](auto& file) { file.mutable_key()->set_id("facts"); },
      [](auto& file) { file.set_size(4); },
      [](auto& file) { file.set_sha256(DigestBytes(Sha256::Of("abd"))); },
      [](auto& file) { file.mutable_expire_time()->set_seconds(4'000'000'000); },
      [](auto& file) { file.mutable_sign_time()->set_seconds(file.sign_time().seconds() + 1); },
  };
  for (const auto& change : changes) {
    v1::SharedFile file = Signed();
    change(file);
    EXPECT_EQ(ReasonOf(Verify(file)), "INVALID_SIGNATURE") << ShareSignatureText(file);
  }
}

TEST_F(ShareSignatureTest, SignatureOfAnotherNodeIsRefused) {
  EXPECT_EQ(ReasonOf(Verify(Signed("n2"))), "INVALID_SIGNATURE");
  const FleetRoot other = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_);
  const std::vector<Certificate> roots = {other.certificate()};
  EXPECT_EQ(ReasonOf(VerifySharedFile(Signed(), kFleet, roots, now_)), "INVALID_SIGNATURE");
}

TEST_F(ShareSignatureTest, SignTimeOutsideTheCertificateIsRefused) {
  v1::SharedFile early = Signed();
  early.mutable_sign_time()->set_seconds(absl::ToUnixSeconds(now_ - absl::Hours(2)));
  ASSERT_TRUE(SignSharedFile(key_, ChainOf("n1"), &early).ok());
  EXPECT_EQ(ReasonOf(Verify(early)), "INVALID_SIGNATURE");
  v1::SharedFile late = Signed();
  late.mutable_sign_time()->set_seconds(absl::ToUnixSeconds(now_ + absl::Hours(2)));
  ASSERT_TRUE(SignSharedFile(key_, ChainOf("n1"), &late).ok());
  EXPECT_EQ(ReasonOf(Verify(late)), "INVALID_SIGNATURE");
}

TEST(ValidateShareId, OnlyFileNamesAreAccepted) {
  for (const std::string id : {"a", "0", "facts.json", "a..b", "A-b_c.", "x.metadata"}) {
    EXPECT_TRUE(ValidateShareId(id).ok()) << id;
  }
  EXPECT_TRUE(ValidateShareId(std::string(253, 'a')).ok());
  for (const std::string id : {"", ".", "..", "../x", "a/b", "/a", "a\\b", "%2e%2e", "a%2fb", "-a",
                               "_a", ".a", "a b", "a\nb", "\xc3\xa9", "a:b"}) {
    EXPECT_EQ(ReasonOf(ValidateShareId(id)), "INVALID_SHARE") << id;
  }
  EXPECT_FALSE(ValidateShareId(std::string(254, 'a')).ok());
  EXPECT_FALSE(ValidateShareId(std::string(4096, 'a')).ok());
  EXPECT_FALSE(ValidateShareId(std::string("a\0b", 3)).ok());
}

}  // namespace
}  // namespace muster
