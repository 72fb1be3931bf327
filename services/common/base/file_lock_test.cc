#include "services/common/base/file_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

namespace muster {
namespace {

std::string Path() { return testing::TempDir() + "/file.lock"; }

TEST(FileLock, HasOneHolder) {
  auto first = TryLockFile(Path());
  ASSERT_TRUE(first.ok() && first->valid()) << first.status();
  const auto second = TryLockFile(Path());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE(second->valid());
  first->reset();
  EXPECT_TRUE(TryLockFile(Path())->valid());
}

TEST(FileLock, IsOfThePresentFile) {
  auto removed = TryLockFile(Path());
  ASSERT_TRUE(removed.ok() && removed->valid());
  std::filesystem::remove(Path());
  const auto present = TryLockFile(Path());
  EXPECT_TRUE(present.ok() && present->valid());
  EXPECT_TRUE(std::filesystem::exists(Path()));
}

TEST(FileLock, IsAcquiredWhenAnotherHolderReleasesItSoon) {
  auto first = TryLockFile(Path());
  ASSERT_TRUE(first.ok() && first->valid());
  int waits = 0;
  EXPECT_FALSE(LockFileSoon(Path(), [&] { ++waits; })->valid());
  EXPECT_EQ(waits, 19);
  EXPECT_TRUE(LockFileSoon(Path(), [&] { first->reset(); })->valid());
}

// A process may open the file before its removal and lock it after that.
TEST(FileLock, HasOneHolderWhileTheFileIsRemoved) {
  std::atomic<int> holders = 0;
  std::atomic<int> violations = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int locked = 0; locked < 100;) {
        const auto lock = TryLockFile(Path());
        if (!lock.ok()) ++violations;
        if (!lock.ok() || !lock->valid()) continue;
        ++locked;
        if (++holders > 1) ++violations;
        std::this_thread::yield();
        --holders;
        std::filesystem::remove(Path());
      }
    });
  }
  threads.clear();
  EXPECT_EQ(violations, 0);
}

TEST(FileLock, DoesNotFollowASymbolicLink) {
  const std::string link = testing::TempDir() + "/link";
  std::filesystem::create_symlink(Path(), link);
  EXPECT_FALSE(TryLockFile(link).ok());
}

}  // namespace
}  // namespace muster
