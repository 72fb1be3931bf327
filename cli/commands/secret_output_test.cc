#include "cli/commands/secret_output.h"

#include <gtest/gtest.h>

#include "cli/exit_code.h"
#include "cli/supervisor/test_folder.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"

namespace muster::cli {
namespace {

TEST(SecretOutputTest, NewOutputOverAFileWithContentFails) {
  const supervisor::TestFolder folder;
  const std::string file = folder / "alice.json";
  EXPECT_TRUE(CheckNewSecretOutput("--output", file).ok());
  ASSERT_TRUE(WriteFileAtomically(file, "").ok());
  EXPECT_TRUE(CheckNewSecretOutput("--output", file).ok());
  ASSERT_TRUE(WriteFileAtomically(file, "secret").ok());
  const absl::Status status = CheckNewSecretOutput("--output", file);
  EXPECT_EQ(ReasonOf(status), "FILE_EXISTS");
  EXPECT_EQ(ExitCodeOf(status), kExitError);
}

TEST(SecretOutputTest, StandardOutputIsAlwaysNew) {
  EXPECT_TRUE(CheckNewSecretOutput("--output", "").ok());
  EXPECT_TRUE(CheckNewSecretOutput("--output", "-").ok());
}

}  // namespace
}  // namespace muster::cli
