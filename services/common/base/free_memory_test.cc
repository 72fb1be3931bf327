#include "services/common/base/free_memory.h"

#include <cstring>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

// Allocates and frees `count` blocks of 1 MiB.
void Burst(int count) {
  constexpr size_t kBlock = size_t{1} << 20;
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int i = 0; i < count; ++i) {
    blocks.push_back(std::make_unique<char[]>(kBlock));
    std::memset(blocks.back().get(), i, kBlock);
  }
}

// The sanitizers replace the allocator.
TEST(FreeMemoryTest, MemoryOfABurstIsReleasedDownToTheLimit) {
  Burst(256);
  const size_t before = FreeBytes();
  if (before == 0) GTEST_SKIP() << "without tcmalloc";
  ASSERT_GT(before, 4 * kKeptFreeBytes);
  ReleaseFreeMemory();
  EXPECT_LT(FreeBytes(), before);
  for (int call = 0; call < 16; ++call) ReleaseFreeMemory();
  EXPECT_LE(FreeBytes(), kKeptFreeBytes);
}

TEST(FreeMemoryTest, LittleFreeMemoryIsKept) {
  for (int call = 0; call < 16; ++call) ReleaseFreeMemory();
  Burst(8);
  const size_t before = FreeBytes();
  if (before == 0) GTEST_SKIP() << "without tcmalloc";
  ASSERT_LE(before, kKeptFreeBytes);
  ReleaseFreeMemory();
  EXPECT_GE(FreeBytes(), before);
}

}  // namespace
}  // namespace muster
