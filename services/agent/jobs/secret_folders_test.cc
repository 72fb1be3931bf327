#include "services/agent/jobs/secret_folders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

class SecretFoldersTest : public ::testing::Test {
 protected:
  SecretFoldersTest() {
    std::string name = "/dev/shm/muster-secret-folders-test-XXXXXX";
    memory_ = mkdtemp(name.data());
    folders_ = std::make_unique<SecretFolders>("/agent", "n1", std::vector<std::string>{memory_});
    auto& value = *values_.add_values();
    value.set_name("db");
    value.set_value("hunter22");
  }
  ~SecretFoldersTest() override {
    for (const auto& job : jobs_) folders_->Remove(job).IgnoreError();
    fs::remove_all(memory_);
  }

  std::string PathOf(const std::string& job) { return folders_->PathOf(job).value(); }
  static mode_t ModeOf(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }
  static uid_t OwnerOf(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_uid;
  }

  std::string memory_;
  const std::vector<std::string> jobs_ = {"a", "b"};
  v1::SecretValues values_;
  std::unique_ptr<SecretFolders> folders_;
};

TEST_F(SecretFoldersTest, ValuesAreReadUntilTheyAreRemoved) {
  ASSERT_TRUE(folders_->Create("a", "65532:65532", values_).ok());
  // A later process of the agent.
  const SecretFolders later("/agent", "n1", {memory_});
  const auto read = later.Read("a");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->values(0).name(), "db");
  EXPECT_EQ(read->values(0).value(), "hunter22");
  EXPECT_TRUE(later.Remove("a").ok());
  EXPECT_FALSE(fs::exists(PathOf("a")));
  EXPECT_TRUE(absl::IsNotFound(folders_->Read("a").status()));
  EXPECT_TRUE(folders_->Remove("a").ok());
}

TEST_F(SecretFoldersTest, OnlyTheUserOfTheContainerReadsTheFiles) {
  ASSERT_TRUE(folders_->Create("a", "65532:65532", values_).ok());
  EXPECT_EQ(ModeOf(fs::path(PathOf("a")).parent_path()), 0700);
  if (geteuid() == 0) {
    EXPECT_EQ(ModeOf(PathOf("a")), 0500);
    EXPECT_EQ(OwnerOf(PathOf("a")), 65532u);
    EXPECT_EQ(ModeOf(PathOf("a") + "/db"), 0400);
    EXPECT_EQ(OwnerOf(PathOf("a") + "/db"), 65532u);
  }
  // A name that only the image knows.
  ASSERT_TRUE(folders_->Create("b", "app", values_).ok());
  EXPECT_EQ(ModeOf(PathOf("b")), 0555);
  EXPECT_EQ(ModeOf(PathOf("b") + "/db"), 0444);
}

TEST_F(SecretFoldersTest, EarlierValuesOfTheJobAreReplaced) {
  ASSERT_TRUE(folders_->Create("a", "65532", values_).ok());
  values_.mutable_values(0)->set_name("other");
  ASSERT_TRUE(folders_->Create("a", "65532", values_).ok());
  EXPECT_FALSE(fs::exists(PathOf("a") + "/db"));
  EXPECT_TRUE(fs::exists(PathOf("a") + "/other"));
}

TEST_F(SecretFoldersTest, FoldersOfOtherJobsAndAgentsAreTold) {
  const SecretFolders other("/agent", "n2", {memory_});
  ASSERT_TRUE(folders_->Create("a", "65532", values_).ok());
  ASSERT_TRUE(folders_->Create("b", "65532", values_).ok());
  ASSERT_TRUE(other.Create("a", "65532", values_).ok());
  folders_->RemoveOthers([](const std::string& job) { return job == "b"; });
  EXPECT_FALSE(fs::exists(PathOf("a")));
  EXPECT_TRUE(fs::exists(PathOf("b")));
  EXPECT_TRUE(fs::exists(*other.PathOf("a")));
  EXPECT_TRUE(other.Remove("a").ok());
}

TEST_F(SecretFoldersTest, NothingIsLeftAfterTheLastJob) {
  ASSERT_TRUE(folders_->Create("a", "", values_).ok());
  ASSERT_TRUE(folders_->Create("b", "", values_).ok());
  EXPECT_TRUE(folders_->Remove("a").ok());
  EXPECT_EQ(folders_->Read("b")->values_size(), 1);
  EXPECT_TRUE(folders_->Remove("b").ok());
  EXPECT_TRUE(fs::is_empty(memory_));
  ASSERT_TRUE(folders_->Create("a", "", values_).ok()) << "it is created again";
  folders_->RemoveOthers([](const std::string&) { return false; });
  EXPECT_TRUE(fs::is_empty(memory_));
  // A killed agent left it.
  ASSERT_EQ(mkdir(fs::path(PathOf("a")).parent_path().c_str(), 0700), 0);
  folders_->RemoveOthers([](const std::string&) { return false; });
  EXPECT_TRUE(fs::is_empty(memory_));
}

TEST_F(SecretFoldersTest, DiskIsRefused) {
  const SecretFolders disk("/agent", "n1", {"/proc", "/missing"});
  const absl::Status status = disk.PathOf("a").status();
  EXPECT_EQ(ReasonOf(status), "SECRET_UNAVAILABLE");
  EXPECT_NE(status.message().find("/proc, /missing"), absl::string_view::npos);
  EXPECT_EQ(ReasonOf(disk.Create("a", "65532", values_)), "SECRET_UNAVAILABLE");
  EXPECT_TRUE(disk.Remove("a").ok());
  disk.RemoveOthers([](const std::string&) { return false; });
}

TEST_F(SecretFoldersTest, FolderThatAnotherUserPreparedIsRefused) {
  const fs::path base = fs::path(PathOf("a")).parent_path();
  fs::create_directories(memory_ + "/prepared");
  fs::create_directory_symlink(memory_ + "/prepared", base);
  EXPECT_EQ(ReasonOf(folders_->Create("a", "65532", values_)), "SECRET_UNAVAILABLE");
  fs::remove(base);
  fs::create_directory(base);
  chmod(base.c_str(), 0777);
  EXPECT_EQ(ReasonOf(folders_->Create("a", "65532", values_)), "SECRET_UNAVAILABLE");
  EXPECT_TRUE(fs::is_empty(base));
}

}  // namespace
}  // namespace muster
