#include "services/agent/jobs/untrusted_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/unique_fd.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr FolderLimits kLimits = {.entries = 10, .bytes = int64_t{1} << 20, .levels = 3};

class UntrustedFolderTest : public ::testing::Test {
 protected:
  UntrustedFolderTest() {
    std::filesystem::remove_all(base_);
    std::filesystem::create_directories(folder_);
  }

  std::string Why() const { return WhyTooLarge(folder_, kLimits); }
  void Write(const std::string& name, size_t size) const {
    std::ofstream(folder_ + "/" + name) << std::string(size, 'x');
  }

  // Makes folders in folders, deeper than the longest path, and a file in the last one.
  void MakeDeep(int levels) const {
    UniqueFd at(open(folder_.c_str(), O_RDONLY | O_DIRECTORY));
    const std::string name(200, 'd');
    for (int i = 0; i < levels; ++i) {
      ASSERT_EQ(mkdirat(at.get(), name.c_str(), 0755), 0);
      at.reset(openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY));
      ASSERT_TRUE(at.valid());
    }
    const UniqueFd file(openat(at.get(), "file", O_WRONLY | O_CREAT, 0000));
    ASSERT_TRUE(file.valid());
  }

  const std::string base_ = ::testing::TempDir() + "/untrusted-folder";
  const std::string folder_ = base_ + "/state";
};

// The memory of the test has such files, not every disk.
TEST(UntrustedFolderInMemoryTest, FileOfTheLargestSizeIsTooLargeBesideOthers) {
  std::string folder = "/dev/shm/muster-untrusted-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string inner = folder + "/inner";  // counted before its content
  ASSERT_EQ(mkdir(inner.c_str(), 0755), 0);
  const UniqueFd file(open((inner + "/file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_EQ(ftruncate(file.get(), std::numeric_limits<int64_t>::max()), 0);
  EXPECT_EQ(WhyTooLarge(folder, kLimits), "more than 1 MiB");
  std::filesystem::remove_all(folder);
}

TEST_F(UntrustedFolderTest, ContentWithinTheLimitsIsNotTooLarge) {
  EXPECT_EQ(Why(), "");
  for (int i = 0; i < 8; ++i) Write(absl::StrCat(i), 100 << 10);
  std::filesystem::create_directories(folder_ + "/a/b");
  EXPECT_EQ(Why(), "");
  EXPECT_EQ(WhyTooLarge(base_ + "/none", kLimits), "");
}

TEST_F(UntrustedFolderTest, EachLimitIsAReason) {
  for (int i = 0; i < 11; ++i) Write(absl::StrCat(i), 0);
  EXPECT_EQ(Why(), "more than 10 files and folders");
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directories(folder_ + "/a/b/c");
  EXPECT_EQ(Why(), "more than 3 levels of folders");
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directories(folder_ + "/a");
  Write("a/x", (1 << 20) + 1);
  EXPECT_EQ(Why(), "more than 1 MiB");
}

// Such a file has no size, and uses the disk.
TEST_F(UntrustedFolderTest, ReservedSpaceCounts) {
  const UniqueFd file(open((folder_ + "/x").c_str(), O_WRONLY | O_CREAT, 0600));
  if (fallocate(file.get(), FALLOC_FL_KEEP_SIZE, 0, 2 << 20) != 0) {
    GTEST_SKIP() << "the file system cannot reserve space";
  }
  EXPECT_EQ(Why(), "more than 1 MiB");
}

TEST_F(UntrustedFolderTest, LinksAreNotFollowed) {
  std::filesystem::create_directories(base_ + "/other");
  for (int i = 0; i < 20; ++i) std::ofstream(absl::StrCat(base_, "/other/", i)) << "x";
  std::filesystem::create_directory_symlink(base_ + "/other", folder_ + "/link");
  std::filesystem::create_symlink(base_ + "/other/1", folder_ + "/file");
  EXPECT_EQ(Why(), "");
  EXPECT_TRUE(RemoveUntrusted(folder_).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_));
  EXPECT_TRUE(std::filesystem::exists(base_ + "/other/1"));
  std::filesystem::create_directory_symlink(base_ + "/other", folder_);
  EXPECT_EQ(Why(), "");
  EXPECT_TRUE(RemoveUntrusted(folder_).ok());
  EXPECT_TRUE(std::filesystem::exists(base_ + "/other/1"));
}

TEST_F(UntrustedFolderTest, ContentOfAnyDepthAndModeIsRemoved) {
  MakeDeep(100);
  Write("moved-0", 1);  // a name that the removal uses
  std::filesystem::create_directories(folder_ + "/a/moved-1/b");
  Write("a/moved-1/b/file", 1);
  Write("a/file", 1);
  mkfifo((folder_ + "/a/fifo").c_str(), 0000);
  for (const char* name : {"/a/moved-1", "/a", ""}) {
    ASSERT_EQ(chmod((folder_ + name).c_str(), 0000), 0);
  }
  const absl::Status removed = RemoveUntrusted(folder_);
  EXPECT_TRUE(removed.ok()) << removed;
  EXPECT_FALSE(std::filesystem::exists(folder_));
  EXPECT_TRUE(RemoveUntrusted(folder_).ok()) << "it does not exist";
}

// The content of another user, for an agent that does not run as root.
TEST_F(UntrustedFolderTest, RestIsRemovedWithoutPermissionForAFolder) {
  ASSERT_EQ(geteuid(), 0u) << "requires root";
  constexpr uid_t kAgent = 65531;
  std::string base = "/tmp/untrustedXXXXXX";  // another user may not enter TEST_TMPDIR
  ASSERT_NE(mkdtemp(base.data()), nullptr);
  const std::string folder = base + "/state";
  std::filesystem::create_directories(folder + "/theirs");
  for (const char* name : {"/own", "/theirs/file"}) std::ofstream(folder + name) << "x";
  for (const std::string& own : {base, folder}) ASSERT_EQ(chown(own.c_str(), kAgent, kAgent), 0);
  ASSERT_EQ(chmod((folder + "/theirs").c_str(), 0700), 0);
  ASSERT_EQ(seteuid(kAgent), 0);
  const std::string why = WhyTooLarge(folder, kLimits);
  const absl::Status removed = RemoveUntrusted(folder);
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(why, "a folder that the agent may not read");
  EXPECT_TRUE(absl::IsPermissionDenied(removed)) << removed;
  EXPECT_THAT(std::string(removed.message()), HasSubstr("theirs"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/own"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/theirs/file"));
  std::filesystem::remove_all(base);
}

}  // namespace
}  // namespace muster
