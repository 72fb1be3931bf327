#include "services/common/base/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32cTest, PublishedVectors) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string up;
  for (int i = 0; i < 32; ++i) up.push_back(static_cast<char>(i));
  EXPECT_EQ(Crc32c(up), 0x46dd794eu);
  EXPECT_EQ(Crc32c(std::string(up.rbegin(), up.rend())), 0x113fdb5cu);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);  // the check value of the CRC catalogue
}

TEST(Crc32cTest, NothingChangesNothing) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(ExtendCrc32c(0x12345678, ""), 0x12345678u);
}

TEST(Crc32cTest, PartsGiveTheWhole) {
  std::string data;
  for (int i = 0; i < 5000; ++i) data.push_back(static_cast<char>(i * 31));
  const std::string_view view = data;
  for (size_t cut = 0; cut <= data.size(); cut += 97) {
    EXPECT_EQ(ExtendCrc32c(Crc32c(view.substr(0, cut)), view.substr(cut)), Crc32c(view));
  }
}

TEST(Crc32cTest, CombinedPartsGiveTheWhole) {
  std::string data;
  for (int i = 0; i < 70'000; ++i) data.push_back(static_cast<char>(i * 31));
  const std::string_view view = data;
  for (const size_t cut : {0, 1, 2, 97, 4096, 65'535, 65'536, 69'999, 70'000}) {
    const std::string_view next = view.substr(cut);
    EXPECT_EQ(CombineCrc32c(Crc32c(view.substr(0, cut)), Crc32c(next), next.size()), Crc32c(view))
        << cut;
  }
}

TEST(Crc32cTest, CombineAcceptsLargeSizes) {
  // 2^40 + 3 bytes in two ways of cutting.
  const uint64_t half = uint64_t{1} << 39;
  const uint32_t one = CombineCrc32c(CombineCrc32c(0x1234, 0x5678, half), 0x9abc, half + 3);
  const uint32_t other =
      CombineCrc32c(0x1234, CombineCrc32c(0x5678, 0x9abc, half + 3), 2 * half + 3);
  EXPECT_EQ(one, other);
}

}  // namespace
}  // namespace muster
