#include "cli/commands/file_argument.h"

#include <string>

#include "cli/exit_code.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/errors/templates.h"

namespace muster::cli {
namespace {

TEST(FileArgumentTest, FileIsReadWithinItsLimit) {
  const std::string file = ::testing::TempDir() + "/document.yaml";
  ASSERT_TRUE(WriteFileAtomically(file, "name: a").ok());
  EXPECT_EQ(ReadFileArgument(file, 100).value(), "name: a");
  EXPECT_FALSE(ReadFileArgument(file, 3).ok());
  EXPECT_EQ(ReasonOf(ReadFileArgument(file + ".none", 100).status()), "FILE_NOT_FOUND");
}

TEST(FileArgumentTest, AnswerToTheContentNamesTheFile) {
  const absl::Status refused =
      FromService(errors::InvalidDocument("line 2: not YAML"), "a template at 127.0.0.1:1");
  const absl::Status named = WithFile(refused, "web.yaml");
  EXPECT_EQ(SubjectOf(named), "web.yaml, a template at 127.0.0.1:1");
  EXPECT_EQ(ReasonOf(named), ReasonOf(refused));
  EXPECT_EQ(ExitCodeOf(named), ExitCodeOf(refused));
  EXPECT_EQ(SubjectOf(WithFile(refused, "-")), "a template at 127.0.0.1:1");
  EXPECT_EQ(ExitCodeOf(WithFile(absl::CancelledError("interrupted"), "web.yaml")), kExitError);
}

}  // namespace
}  // namespace muster::cli
