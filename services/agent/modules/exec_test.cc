#include "services/agent/modules/exec.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
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

TEST_F(ExecTest, FailureToNoteTheProcessIsTheReason) {
  context_.definition.command = {"true"};
  context_.before_start = [](pid_t) { return ErrnoError(EIO, "sync", "the mark"); };
  EXPECT_EQ(Reason(), "IO_ERROR");
}

}  // namespace
}  // namespace muster
