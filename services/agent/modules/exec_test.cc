#include "services/agent/modules/exec.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "services/common/base/errno_error.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// agent_test runs plugins; these tests cover those that cannot start.
class ExecTest : public ::testing::Test {
 protected:
  ExecTest() {
    if (mkdtemp(base_.data()) == nullptr) std::abort();
    context_.plugin = "logs";
    context_.results_dir = base_;
    context_.scratch_dir = base_;
    context_.time_limit = absl::Seconds(30);
  }
  ~ExecTest() override { fs::remove_all(base_); }

  std::string Reason() { return ReasonOf(MakeExecModule()->Run(context_, {}).status()); }

  std::string base_ = ::testing::TempDir() + "/exec_XXXXXX";
  ModuleContext context_;
};

TEST_F(ExecTest, MissingProgramIsNotFound) {
  context_.definition.command = {base_ + "/none"};
  EXPECT_EQ(Reason(), "TOOL_NOT_FOUND");
}

// The plugin may have links to files that only the agent can write.
TEST_F(ExecTest, LinkInPlaceOfTheIncompleteArchiveIsNotWritten) {
  const std::string outside = base_ + "/outside";
  std::ofstream(outside) << "secret";
  context_.results_dir = base_ + "/results";
  fs::create_directory(context_.results_dir);
  context_.definition.command = {"/bin/sh", "-c",
                                 "echo x > out.txt; ln -s " + outside + " out.tar.gz.partial"};
  const auto result = MakeExecModule()->Run(context_, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->path, context_.results_dir + "/out.tar.gz");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(result->path)));
  std::string content;
  std::getline(std::ifstream(outside), content);
  EXPECT_EQ(content, "secret");
}

TEST_F(ExecTest, FailureToNoteTheProcessIsTheReason) {
  context_.definition.command = {"true"};
  context_.before_start = [](pid_t) { return ErrnoError(EIO, "sync", "the mark"); };
  EXPECT_EQ(Reason(), "IO_ERROR");
}

}  // namespace
}  // namespace muster
