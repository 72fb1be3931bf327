#include "cli/commands/secret_output.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <sstream>

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

TEST(SecretOutputTest, OutputThatIsNoRegularFileIsKept) {
  const supervisor::TestFolder folder;
  const std::string pipe = folder / "pipe";
  const std::string link = folder / "link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink("target", link);
  std::ostringstream out;
  std::ostringstream err;
  Console console{.out = out, .err = err};
  for (const std::string& file : {pipe, link}) {
    EXPECT_EQ(ReasonOf(CheckNewSecretOutput("--output", file)), "NOT_A_FILE");
    EXPECT_EQ(ReasonOf(WriteSecretOutput(console, file, "secret")), "NOT_A_FILE");
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_FALSE(std::filesystem::exists(folder / "target"));
}

TEST(SecretOutputTest, StandardOutputIsAlwaysNew) {
  EXPECT_TRUE(CheckNewSecretOutput("--output", "").ok());
  EXPECT_TRUE(CheckNewSecretOutput("--output", "-").ok());
}

}  // namespace
}  // namespace muster::cli
