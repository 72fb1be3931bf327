#include "cli/commands/deployment_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "services/common/base/sha256.h"
#include "services/common/templates/files.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string DigestOf(const std::string& bytes) { return DigestBytes(Sha256::Of(bytes)); }

class DeploymentFilesTest : public ::testing::Test {
 protected:
  DeploymentFilesTest() { fs::create_directories(folder_ + "/roles/web"); }
  ~DeploymentFilesTest() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(absl::StrCat(folder_, "/", name), std::ios::binary) << content;
  }

  void ExpectRefused(const std::string& path, const std::string& why, int code = kExitUsage) const {
    const absl::Status status = ReadDeploymentFiles(path).status();
    EXPECT_EQ(ExitCodeOf(status), code);
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
  fs::create_directories(folder_ + "/roles/.git");
  Write("roles/.git/config", "password");
  for (const std::string& folder : {folder_, folder_ + "/", folder_ + "/roles/.."}) {
    const auto files = ReadDeploymentFiles(folder);
    ASSERT_TRUE(files.ok()) << files.status();
    std::vector<std::string> paths;
    for (const LocalFile& file : *files) paths.push_back(file.file.path());
    ASSERT_THAT(paths, ElementsAre(".hidden", "main.sh", "roles.yaml", "roles/web/tasks.yaml"))
        << folder;
    EXPECT_EQ(files->at(0).file.size(), 2);
    EXPECT_EQ(files->at(0).file.sha256(), DigestOf(std::string("\0\xff", 2)));
    EXPECT_EQ(files->at(0).source,
              absl::StrCat(folder, folder.ends_with('/') ? "" : "/", ".hidden"));
    EXPECT_TRUE(files->at(1).file.executable());
    EXPECT_FALSE(files->at(2).file.executable());
    EXPECT_TRUE(files->at(3).file.sha256().empty());  // it is empty
  }
}

TEST_F(DeploymentFilesTest, OneFileHasItsName) {
  Write("roles/web/tasks.yaml", "x");
  const auto files = ReadDeploymentFiles(folder_ + "/roles/web/tasks.yaml");
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ(files->at(0).file.path(), "tasks.yaml");
}

TEST_F(DeploymentFilesTest, WhatIsNoRegularFileIsRefused) {
  ExpectRefused(folder_, "has no files");
  ExpectRefused(folder_ + "/missing", "No such file", kExitError);
  ExpectRefused("/dev/null", "is not a regular file");
  fs::create_symlink("/etc/passwd", folder_ + "/roles/link");
  ExpectRefused(folder_, "\"roles/link\" is a symbolic link");
  ExpectRefused(folder_ + "/roles/link", "is a symbolic link");
  fs::remove(folder_ + "/roles/link");
  fs::create_symlink("web", folder_ + "/roles/link");
  ExpectRefused(folder_, "\"roles/link\" is a symbolic link");
}

TEST_F(DeploymentFilesTest, NameThatIsNotUtf8IsRefused) {
  Write("a\xff", "x");
  ExpectRefused(folder_, "is not UTF-8");
}

TEST_F(DeploymentFilesTest, TooMuchIsRefused) {
  Write("b", "");
  fs::resize_file(folder_ + "/b", (uint64_t{1} << 30) + 1);  // sparse
  ExpectRefused(folder_, "\"b\" exceeds the limit of all files together, 1GiB");
}

}  // namespace
}  // namespace muster::cli
