#include "services/agent/modules/systemd_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// Replaces the journal by a program called journalctl that is first in PATH, because the machine of
// the tests may have no journal.
class SystemdLogsTest : public ::testing::Test {
 protected:
  SystemdLogsTest()
      : base_(::testing::TempDir() + "/systemd_logs_test"), path_(std::getenv("PATH")) {
    fs::remove_all(base_);
    for (const char* folder : {"bin", "results", "scratch"})
      fs::create_directories(base_ + "/" + folder);
    context_.results_dir = base_ + "/results";
    context_.scratch_dir = base_ + "/scratch";
    context_.max_output_bytes = 1 << 20;
    context_.time_limit = absl::Minutes(1);
  }
  ~SystemdLogsTest() override {
    ::setenv("PATH", path_.c_str(), 1);
    fs::remove_all(base_);
  }

  void Journal(const std::string& shell) {
    std::ofstream(base_ + "/bin/journalctl") << "#!/bin/sh\n" << shell << "\n";
    ::chmod((base_ + "/bin/journalctl").c_str(), 0700);
    ::setenv("PATH", (base_ + "/bin:" + path_).c_str(), 1);
  }

  absl::StatusOr<std::string> Gather() {
    ASSIGN_OR_RETURN(const auto result, MakeSystemdLogsModule()->Run(context_, {}));
    std::stringstream text;
    text << std::ifstream(result.path).rdbuf();
    return text.str();
  }

  const std::string base_;
  const std::string path_;
  ModuleContext context_;
};

TEST_F(SystemdLogsTest, EntriesAreWrittenOldestFirst) {
  Journal(
      "case \"$*\" in *--reverse*) ;; *) exit 9 ;; esac; printf "
      "'{\"n\":3}\\n{\"n\":2}\\n{\"n\":1}\\n'");
  EXPECT_EQ(Gather().value(), "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
}

TEST_F(SystemdLogsTest, NewestEntriesWithinTheLimitAreKept) {
  Journal("i=9; while :; do echo \"{\\\"n\\\":$i}\"; i=$((i-1)); [ $i -ge 0 ] || i=9; done");
  context_.max_output_bytes = 25;  // three lines of eight bytes
  EXPECT_EQ(Gather().value(), "{\"n\":7}\n{\"n\":8}\n{\"n\":9}\n");
}

TEST_F(SystemdLogsTest, EntriesReadWithinTheTimeLimitAreKept) {
  Journal("echo '{\"n\":2}'; echo '{\"n\":1}'; exec sleep 1000");
  context_.time_limit = absl::Seconds(2);
  EXPECT_EQ(Gather().value(), "{\"n\":1}\n{\"n\":2}\n");
}

TEST_F(SystemdLogsTest, EmptyJournalFails) {
  Journal("echo 'No journal files were found.' >&2");
  const auto status = Gather().status();
  EXPECT_EQ(ReasonOf(status), "JOURNAL_EMPTY");
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("No journal files"));
}

TEST_F(SystemdLogsTest, FailingJournalctlFails) {
  Journal("echo broken >&2; exit 3");
  const auto status = Gather().status();
  EXPECT_EQ(ReasonOf(status), "PLUGIN_FAILED");
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("broken"));
}

TEST_F(SystemdLogsTest, MissingJournalctlFails) {
  ::setenv("PATH", (base_ + "/results").c_str(), 1);
  EXPECT_EQ(ReasonOf(Gather().status()), "TOOL_NOT_FOUND");
}

}  // namespace
}  // namespace muster
