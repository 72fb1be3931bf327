#include "services/common/base/file_lock.h"

#include <gtest/gtest.h>

#include <filesystem>

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

TEST(FileLock, DoesNotFollowASymbolicLink) {
  const std::string link = testing::TempDir() + "/link";
  std::filesystem::create_symlink(Path(), link);
  EXPECT_FALSE(TryLockFile(link).ok());
}

}  // namespace
}  // namespace muster
