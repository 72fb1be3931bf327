#include "services/agent/jobs/deployment_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "services/agent/jobs/untrusted_folder.h"
#include "services/common/errors/contents.h"

namespace muster {
namespace {

mode_t ModeOf(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
}

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class DeploymentFilesTest : public ::testing::Test {
 protected:
  DeploymentFilesTest() { std::filesystem::create_directory(parent_); }
  ~DeploymentFilesTest() override { std::filesystem::remove_all(parent_); }

  void Add(const std::string& path, const std::string& content, bool executable = false) {
    v1::Command::File& file = *files_.Add();
    file.set_path(path);
    file.set_content(content);
    file.set_executable(executable);
  }

  const std::string parent_ = ::testing::TempDir() + "/deployment_files_test";
  const std::string folder_ = parent_ + "/files";
  google::protobuf::RepeatedPtrField<v1::Command::File> files_;
  std::vector<std::string> fetched_;
  absl::Status fetch_failure_;
  const std::function<absl::Status(const std::string&, const v1::Command::File&)> fetch_ =
      [this](const std::string& path, const v1::Command::File& file) {
        fetched_.push_back(path + " of " + file.path());
        return fetch_failure_;
      };
};

TEST_F(DeploymentFilesTest, AnyUserReadsTheFilesWhateverTheUmaskIs) {
  Add("a/b/data", std::string("\0\xff\n", 3));
  Add("a/b/empty", "");
  Add("main.sh", "#!/bin/sh\n", true);
  const mode_t umask_before = umask(0077);
  const absl::Status status = WriteDeploymentFiles(folder_, files_, fetch_);
  umask(umask_before);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ContentOf(folder_ + "/a/b/data"), std::string("\0\xff\n", 3));
  EXPECT_EQ(ContentOf(folder_ + "/main.sh"), "#!/bin/sh\n");
  EXPECT_EQ(ModeOf(folder_), 0755u);
  EXPECT_EQ(ModeOf(folder_ + "/a/b"), 0755u);
  EXPECT_EQ(ModeOf(folder_ + "/a/b/empty"), 0444u);
  EXPECT_EQ(ModeOf(folder_ + "/main.sh"), 0555u);
  EXPECT_TRUE(RemoveUntrusted(folder_).ok());
}

TEST_F(DeploymentFilesTest, StoredContentIsFetchedIntoItsFolder) {
  Add("a/data", "");
  files_[0].set_sha256(std::string(32, 'x'));
  files_[0].set_size(7);
  Add("main.sh", "");
  ASSERT_TRUE(WriteDeploymentFiles(folder_, files_, fetch_).ok());
  EXPECT_EQ(fetched_, std::vector<std::string>{folder_ + "/a/data of a/data"});
  EXPECT_EQ(ModeOf(folder_ + "/a"), 0755u);
  EXPECT_TRUE(RemoveUntrusted(folder_).ok());
  fetch_failure_ = errors::ContentDamaged("a/data");
  EXPECT_EQ(WriteDeploymentFiles(folder_, files_, fetch_), fetch_failure_);
}

TEST_F(DeploymentFilesTest, ExistingFolderIsAnError) {
  std::filesystem::create_directory(folder_);
  Add("a", "");
  EXPECT_TRUE(absl::IsAlreadyExists(WriteDeploymentFiles(folder_, files_, fetch_)));
}

TEST_F(DeploymentFilesTest, LinkIsNotFollowed) {
  std::filesystem::create_symlink(parent_ + "/elsewhere", parent_ + "/link");
  EXPECT_TRUE(absl::IsAlreadyExists(WriteReadOnly(parent_ + "/link", "x", false)));
  EXPECT_FALSE(std::filesystem::exists(parent_ + "/elsewhere"));
}

}  // namespace
}  // namespace muster
