#include "services/common/identity/aes_gcm.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

const std::string kNonce(kGcmNonceSize, 'n');

TEST(AesGcmTest, OpenReturnsWhatWasSealedWithTheSameKeyNonceAndAssociatedData) {
  for (const size_t size : {16, 32}) {
    const std::string key(size, 'k');
    for (const std::string plain : {"", "a", "a longer text of several blocks of the cipher"}) {
      const auto sealed = GcmSeal(key, kNonce, "associated", plain);
      ASSERT_TRUE(sealed);
      EXPECT_EQ(GcmOpen(key, kNonce, "associated", *sealed)->view(), plain);
      EXPECT_FALSE(GcmOpen(key, kNonce, "other", *sealed));
      EXPECT_FALSE(GcmOpen(std::string(size, 'x'), kNonce, "associated", *sealed));
      EXPECT_FALSE(GcmOpen(key, std::string(kGcmNonceSize, 'x'), "associated", *sealed));
      for (size_t i = 0; i < sealed->size(); ++i) {
        std::string changed = *sealed;
        changed[i] = static_cast<char>(changed[i] ^ 1);
        EXPECT_FALSE(GcmOpen(key, kNonce, "associated", changed)) << i;
        EXPECT_FALSE(GcmOpen(key, kNonce, "associated", sealed->substr(0, i))) << i;
      }
    }
  }
}

TEST(AesGcmTest, KeyOrNonceOfAnotherSizeFails) {
  EXPECT_FALSE(GcmSeal(std::string(24, 'k'), kNonce, "", "a"));
  EXPECT_FALSE(GcmSeal(std::string(16, 'k'), "short", "", "a"));
  EXPECT_FALSE(GcmOpen(std::string(16, 'k'), "short", "", std::string(20, 's')));
}

}  // namespace
}  // namespace muster
