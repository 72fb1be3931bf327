#include "cli/output/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>

#include "cli/supervisor/test_folder.h"
#include "services/common/base/error.h"

namespace muster::cli {
namespace {

class OutputFileTest : public ::testing::Test {
 protected:
  std::string Check(const std::string& name) {
    const absl::Status status = CheckOutputFile(folder_ / name);
    return ReasonOf(status).empty() ? std::string(status.message())
                                    : ReasonOf(status) + " " + std::string(status.message());
  }

  std::string Refusal(const std::string& name, const std::string& kind) {
    return "NOT_A_FILE " + (folder_ / name) + " is " + kind + ", not a regular file";
  }

  const supervisor::TestFolder folder_;
};

TEST_F(OutputFileTest, RegularAndMissingFilesAreAdmitted) {
  std::ofstream(folder_ / "file") << "content";
  EXPECT_EQ(Check("file"), "");
  EXPECT_EQ(Check("none"), "");
  EXPECT_EQ(Check("none/file"), "");
  EXPECT_EQ(Check("file/file"), "");
}

TEST_F(OutputFileTest, LinkIsRefusedWhateverItsTargetIs) {
  std::ofstream(folder_ / "file") << "content";
  std::filesystem::create_symlink("file", folder_ / "link");
  std::filesystem::create_symlink("none", folder_ / "dangling");
  EXPECT_EQ(Check("link"), Refusal("link", "a symbolic link"));
  EXPECT_EQ(Check("dangling"), Refusal("dangling", "a symbolic link"));
}

TEST_F(OutputFileTest, PipeAndFolderAreRefused) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(folder_ / "folder");
  EXPECT_EQ(Check("pipe"), Refusal("pipe", "a pipe"));
  EXPECT_EQ(Check("folder"), Refusal("folder", "a folder"));
}

TEST_F(OutputFileTest, DeviceIsRefused) {
  if (mknod((folder_ / "null").c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) {
    GTEST_SKIP() << "takes the right to make devices";
  }
  EXPECT_EQ(Check("null"), Refusal("null", "a device"));
}

TEST_F(OutputFileTest, StandardOutputIsRefused) {
  EXPECT_EQ(ReasonOf(CheckOutputFile("-")), "NOT_A_FILE");
}

}  // namespace
}  // namespace muster::cli
