#include "cli/temporary_folder.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace muster::cli {
namespace {

TEST(TemporaryFolderTest, FolderIsPrivateAndRemovedWithItsContent) {
  std::string path;
  {
    const TemporaryFolder folder(::testing::TempDir());
    path = folder.path();
    ASSERT_TRUE(path.starts_with(::testing::TempDir())) << path;
    struct stat info = {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    std::filesystem::create_directories(path + "/a/b");
    std::ofstream(path + "/a/b/file") << "x";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryFolderTest, MissingParentGivesNoFolder) {
  EXPECT_EQ(TemporaryFolder(::testing::TempDir() + "/none").path(), "");
}

}  // namespace
}  // namespace muster::cli
