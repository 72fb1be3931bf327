#include "cli/commands/deployment_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DeploymentFilesTest : public ::testing::Test {
 protected:
  DeploymentFilesTest() { fs::create_directories(folder_ + "/roles/web"); }
  ~DeploymentFilesTest() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(absl::StrCat(folder_, "/", name), std::ios::binary) << content;
  }

  void ExpectRefused(const std::string& path, const std::string& why) const {
    const absl::Status status = ReadDeploymentFiles(path).status();
    EXPECT_EQ(ExitCodeOf(status), kExitUsage);
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }

  const std::string folder_ = ::testing::TempDir() + "/deployment_files";
};

TEST_F(DeploymentFilesTest, FolderIsReadWithItsSubfolders) {
  Write("main.sh", "#!/bin/sh\n");
  fs::permissions(folder_ + "/main.sh", fs::perms::owner_all);
  Write(".hidden", std::string("\0\xff", 2));
  Write("roles/web/tasks.yaml", "");
  Write("roles.yaml", "x");
  for (const std::string& folder : {folder_, folder_ + "/", folder_ + "/roles/.."}) {
    const auto files = ReadDeploymentFiles(folder);
    ASSERT_TRUE(files.ok()) << files.status();
    std::vector<std::string> paths;
    for (const v1::Command::File& file : *files) paths.push_back(file.path());
    ASSERT_THAT(paths, ElementsAre(".hidden", "main.sh", "roles.yaml", "roles/web/tasks.yaml"))
        << folder;
    EXPECT_EQ(files->Get(0).content(), std::string("\0\xff", 2));
    EXPECT_TRUE(files->Get(1).executable());
    EXPECT_FALSE(files->Get(2).executable());
  }
}

TEST_F(DeploymentFilesTest, OneFileHasItsName) {
  Write("roles/web/tasks.yaml", "x");
  const auto files = ReadDeploymentFiles(folder_ + "/roles/web/tasks.yaml");
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 1);
  EXPECT_EQ(files->Get(0).path(), "tasks.yaml");
}

TEST_F(DeploymentFilesTest, WhatIsNoRegularFileIsRefused) {
  ExpectRefused(folder_, "has no files");
  ExpectRefused(folder_ + "/missing", "No such file");
  ExpectRefused("/dev/null", "is not a regular file");
  fs::create_symlink("/etc/passwd", folder_ + "/roles/link");
  ExpectRefused(folder_, "roles/link: is a symbolic link");
  ExpectRefused(folder_ + "/roles/link", "is a symbolic link");
  fs::remove(folder_ + "/roles/link");
  fs::create_symlink("web", folder_ + "/roles/link");
  ExpectRefused(folder_, "roles/link: is a symbolic link");
}

TEST_F(DeploymentFilesTest, NameThatIsNotUtf8IsRefused) {
  Write("a\xff", "x");
  ExpectRefused(folder_, "is not UTF-8");
}

TEST_F(DeploymentFilesTest, TooMuchIsRefused) {
  Write("a", std::string(100 << 10, 'x'));
  EXPECT_TRUE(ReadDeploymentFiles(folder_).ok());
  Write("b", std::string(100 << 10, 'x'));
  ExpectRefused(folder_, "more than 128KiB together");
}

}  // namespace
}  // namespace muster::cli
