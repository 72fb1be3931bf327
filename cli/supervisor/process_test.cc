#include "cli/supervisor/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "cli/supervisor/test_folder.h"
#include "services/common/base/secret_file.h"
#include "testing/fixtures/await.h"

namespace muster::supervisor {
namespace {

TEST(ProcessTest, SamePidWithAnotherStartTimeIsNotFound) {
  const auto self = IdentifyProcess(::getpid());
  ASSERT_TRUE(self.has_value());
  EXPECT_TRUE(Process::Find(*self).has_value());

  ProcessIdentity other = *self;
  other.start_ticks += 1;
  EXPECT_FALSE(Process::Find(other).has_value());
  other = *self;
  other.boot_id = "another boot";
  EXPECT_FALSE(Process::Find(other).has_value());
  EXPECT_FALSE(IdentifyProcess(0).has_value());
}

TEST(ProcessTest, WrittenPidFileIsReadUnchanged) {
  const TestFolder folder;
  const ProcessIdentity identity{.pid = 42, .start_ticks = 7, .boot_id = "b"};
  ASSERT_TRUE(WritePidFile(folder / "x.pid", identity).ok());
  EXPECT_EQ(ReadPidFile(folder / "x.pid"), identity);
  EXPECT_FALSE(ReadPidFile(folder / "none.pid").has_value());
  for (const char* text : {"", "42\n", "{}", "{\"pid\":\"42\"}", "[1]"}) {
    ASSERT_TRUE(WriteFileAtomically(folder / "bad.pid", text).ok());
    EXPECT_FALSE(ReadPidFile(folder / "bad.pid").has_value()) << text;
  }
}

TEST(ProcessTest, SpawnedProcessHasItsPidFileBeforeItRuns) {
  const TestFolder folder;
  const auto process = Process::Spawn({.argv = {"/bin/cat", folder / "x.pid"},
                                       .log_file = folder / "x.log",
                                       .pid_file = folder / "x.pid"});
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_TRUE(process->WaitForExit(absl::Seconds(20)));
  EXPECT_EQ(process->Reap(), "exit code 0");
  const auto log = ReadFileBounded(folder / "x.log", 1000);
  const auto pid_file = ReadFileBounded(folder / "x.pid", 1000);
  ASSERT_TRUE(pid_file.ok());
  EXPECT_EQ(*log, *pid_file);
  EXPECT_EQ(ReadPidFile(folder / "x.pid")->pid, process->pid());
}

TEST(ProcessTest, StopKillsAProcessThatIgnoresSigterm) {
  const TestFolder folder;
  const auto sleeper =
      Process::Spawn({.argv = {"/bin/sleep", "1000"}, .log_file = folder / "x.log"});
  ASSERT_TRUE(sleeper.ok()) << sleeper.status();
  StopProcess(*sleeper, absl::Seconds(20));
  EXPECT_EQ(sleeper->Reap(), "killed by signal 15 (Terminated)");

  const auto stubborn =
      Process::Spawn({.argv = {"/bin/sh", "-c", "trap '' TERM; echo ready; exec sleep 1000"},
                      .log_file = folder / "y.log"});
  ASSERT_TRUE(stubborn.ok()) << stubborn.status();
  ASSERT_TRUE(
      testing::Await([&] { return ReadFileBounded(folder / "y.log", 100).value() == "ready\n"; }));
  StopProcess(*stubborn, absl::Milliseconds(50));
  EXPECT_EQ(stubborn->Reap(), "killed by signal 9 (Killed)");
}

TEST(ProcessTest, StopResumesASuspendedProcess) {
  const TestFolder folder;
  const auto process = Process::Spawn(
      {.argv = {"/bin/sh", "-c", "trap 'exit 3' TERM; echo ready; while :; do sleep 0.02; done"},
       .log_file = folder / "x.log"});
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_TRUE(
      testing::Await([&] { return ReadFileBounded(folder / "x.log", 100).value() == "ready\n"; }));
  process->Signal(SIGSTOP);
  StopProcess(*process, absl::Seconds(60));
  EXPECT_EQ(process->Reap(), "exit code 3");
}

TEST(ProcessTest, StopReportsThatItWaits) {
  const TestFolder folder;
  const auto process = Process::Spawn(
      {.argv = {"/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.02; done"},
       .log_file = folder / "x.log"});
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_TRUE(
      testing::Await([&] { return ReadFileBounded(folder / "x.log", 100).value() == "ready\n"; }));
  int reports = 0;
  StopProcess(*process, absl::Seconds(60), [&] {
    ++reports;
    process->Signal(SIGKILL);
  });
  EXPECT_EQ(reports, 1);
  EXPECT_EQ(process->Reap(), "killed by signal 9 (Killed)");
}

TEST(ProcessTest, MissingProgramFails) {
  const TestFolder folder;
  const auto process = Process::Spawn({.argv = {folder / "none"}, .log_file = folder / "x.log"});
  EXPECT_EQ(process.status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace muster::supervisor
