// The policy of a node as a file that changes.
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "services/agent/jobs/node_policy.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"

namespace muster {
namespace {

class PolicyFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(chmod(::testing::TempDir().c_str(), 0700), 0);
    std::filesystem::remove(path_);
  }

  void Write(std::string_view text, unsigned mode = 0644) {
    ASSERT_TRUE(WriteFileAtomically(path_, text, mode).ok());
  }

  bool AdmitsLs() {
    const auto policy = file_.Current();
    return policy.ok() && (*policy)->Allow({"exec", "alice", {"/bin/ls"}, {}, {}}).ok();
  }

  const std::string path_ = ::testing::TempDir() + "/policy.yaml";
  PolicyFile file_{path_};
};

TEST_F(PolicyFileTest, ChangedFileIsReadAgain) {
  EXPECT_TRUE(file_.Current().ok());
  EXPECT_FALSE(AdmitsLs());
  Write("commands: [{argv: [/bin/ls]}]");
  EXPECT_TRUE(AdmitsLs());
  Write("commands: [{argv: [/bin/ps]}]");
  EXPECT_FALSE(AdmitsLs());
  std::filesystem::remove(path_);
  EXPECT_TRUE(file_.Current().ok());
}

TEST_F(PolicyFileTest, InvalidFileAdmitsNothingAndReportsTheMistake) {
  Write("commands: [{argv: [/bin/ls]}]");
  EXPECT_TRUE(AdmitsLs());
  Write("commands: [{argv: [/bin/ls]}, {}]");
  for (int i = 0; i < 2; ++i) {
    const auto policy = file_.Current();
    EXPECT_EQ(ReasonOf(policy.status()), "POLICY_UNUSABLE");
    EXPECT_NE(policy.status().message().find(path_ + ":1: argv"), absl::string_view::npos);
  }
}

TEST_F(PolicyFileTest, FileThatOthersMayWriteIsRefused) {
  Write("commands: [{argv: [/bin/ls]}]", 0664);
  EXPECT_EQ(ReasonOf(file_.Current().status()), "POLICY_UNUSABLE");
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  EXPECT_TRUE(AdmitsLs());
}

TEST_F(PolicyFileTest, FileInAFolderThatOthersMayWriteIsRefused) {
  const std::string folder = ::testing::TempDir();
  Write("commands: [{argv: [/bin/ls]}]");
  for (const mode_t mode : {0720, 0702}) {
    ASSERT_EQ(chmod(folder.c_str(), mode), 0);
    EXPECT_EQ(ReasonOf(file_.Current().status()), "POLICY_UNUSABLE") << mode;
    ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
    EXPECT_TRUE(AdmitsLs());
  }
  // In a sticky folder only the owner of a file may replace it.
  ASSERT_EQ(chmod(folder.c_str(), 01777), 0);
  EXPECT_TRUE(AdmitsLs());
  ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
}

}  // namespace
}  // namespace muster
