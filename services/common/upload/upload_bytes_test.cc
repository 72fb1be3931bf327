#include "services/common/upload/upload_bytes.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "services/common/base/crc32c.h"

namespace muster {
namespace {

// Returns at most seven bytes at a time.
class Slow final : public ByteSource {
 public:
  explicit Slow(std::string bytes) : bytes_(std::move(bytes)) {}
  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    const size_t n = std::min({buffer.size(), bytes_.size(), size_t{7}});
    std::copy_n(bytes_.begin(), n, buffer.begin());
    bytes_.erase(0, n);
    return n;
  }

 private:
  std::string bytes_;
};

TEST(UploadHashTest, BytesAreHashedFromAnySource) {
  const std::string bytes(100, 'x');
  UploadHash hash;
  hash.Update(bytes.substr(0, 30));
  uint32_t crc32c = ExtendCrc32c(0, bytes.substr(0, 30));
  Slow rest(bytes.substr(30));
  ASSERT_TRUE(hash.Read(rest, 60, &crc32c).ok());
  EXPECT_EQ(hash.size(), 60);
  ASSERT_TRUE(hash.Read(rest, 100, &crc32c).ok());
  EXPECT_EQ(crc32c, Crc32c(bytes));
  EXPECT_TRUE(absl::IsDataLoss(hash.Read(rest, 101, nullptr)));
  EXPECT_EQ(hash.Finish(), DigestBytes(Sha256::Of(bytes)));
  EXPECT_EQ(hash.size(), 0);
}

TEST(UploadHashTest, HashOfRemovedBytesStartsAgain) {
  UploadHash hash;
  hash.Update("kept");
  hash.Shorten(4);
  EXPECT_EQ(hash.size(), 4);
  hash.Update("removed");
  hash.Shorten(4);
  EXPECT_EQ(hash.size(), 0);
  hash.Update("new");
  EXPECT_EQ(hash.Finish(), DigestBytes(Sha256::Of("new")));
}

TEST(ReadUpToTest, ReadsUntilTheLimitOrTheEnd) {
  Slow source("twenty bytes of text");
  EXPECT_EQ(*ReadUpTo(source, 12), "twenty bytes");
  EXPECT_EQ(*ReadUpTo(source, 100), " of text");
}

}  // namespace
}  // namespace muster
