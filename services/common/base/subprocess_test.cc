#include "services/common/base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

constexpr absl::Duration kLong = absl::Minutes(1);  // far more than any of this takes

std::unique_ptr<Subprocess> Shell(const std::string& script, SubprocessOptions options = {}) {
  options.argv = {"/bin/sh", "-c", script};
  if (options.out.kind == ChildOutput::Kind::kNull) options.out = ChildOutput::Tail(65536);
  auto process = Subprocess::Start(std::move(options));
  EXPECT_TRUE(process.ok()) << process.status();
  return *std::move(process);
}

std::string OutputOf(const std::string& script, SubprocessOptions options = {}) {
  auto process = Shell(script, std::move(options));
  const auto status = process->Wait(kLong);
  EXPECT_TRUE(status && status->ok()) << (status ? status->Describe() : "still running");
  return process->StdoutTail();
}

std::string Contents(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

// Returns whether the process has ended; its parent may not have waited for it yet.
bool HasEnded(pid_t pid) {
  if (kill(pid, 0) != 0) return errno == ESRCH;
  const std::string stat = Contents("/proc/" + std::to_string(pid) + "/stat");
  return stat.empty() || stat.find(") Z") != std::string::npos;
}

void ExpectEnds(pid_t pid) {
  EXPECT_TRUE(testing::Await([&] { return HasEnded(pid); }));
}

TEST(SubprocessTest, TellsHowTheChildEnded) {
  EXPECT_TRUE(Shell("exit 0")->Wait(kLong)->ok());
  const auto failed = Shell("exit 3")->Wait(kLong);
  EXPECT_EQ(failed->Describe(), "exit code 3");
  EXPECT_FALSE(failed->ok());
  const auto killed = Shell("kill -KILL $$")->Wait(kLong);
  EXPECT_EQ(killed->signal, SIGKILL);
  EXPECT_EQ(killed->Describe(), "killed by signal 9 (Killed)");
}

TEST(SubprocessTest, WaitGivesUpAndCanBeAskedAgain) {
  auto process = Shell("exec sleep 1000");
  EXPECT_EQ(process->Wait(absl::ZeroDuration()), std::nullopt);
  pollfd ended = {process->pidfd(), POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, 0), 0);
  process->Signal(SIGTERM);
  EXPECT_EQ(poll(&ended, 1, -1), 1);
  EXPECT_EQ(process->Wait(kLong)->signal, SIGTERM);
  EXPECT_EQ(process->Wait(kLong)->signal, SIGTERM);
}

TEST(SubprocessTest, TheEnvironmentIsExactlyWhatWasGiven) {
  setenv("MUSTER_TEST_SECRET", "s3cret", 1);
  setenv("MUSTER_TEST_OPEN", "yes", 1);
  SubprocessOptions options;
  options.environment = AllowListedEnvironment({"MUSTER_TEST_OPEN", "MUSTER_TEST_UNSET"});
  options.environment.push_back("EXTRA=1 2");
  EXPECT_EQ(options.environment, (std::vector<std::string>{"MUSTER_TEST_OPEN=yes", "EXTRA=1 2"}));
  options.argv = {"env"};
  options.out = ChildOutput::Tail(65536);
  auto process = Subprocess::Start(options);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_TRUE((*process)->Wait(kLong)->ok());
  EXPECT_EQ((*process)->StdoutTail(), "MUSTER_TEST_OPEN=yes\nEXTRA=1 2\n");
}

TEST(SubprocessTest, RunsInItsWorkingDirectory) {
  SubprocessOptions options;
  options.working_directory = ::testing::TempDir();
  EXPECT_TRUE(std::filesystem::equivalent(OutputOf("printf %s \"$(pwd -P)\"", options),
                                          ::testing::TempDir()));
}

TEST(SubprocessTest, InheritsNoDescriptorButThoseGiven) {
  const UniqueFd first(open("/etc/hostname", O_RDONLY | O_CLOEXEC));
  const UniqueFd second(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  // On purpose without close-on-exec, and where no descriptor of the child's replaces it.
  const UniqueFd leak(fcntl(first.get(), F_DUPFD, 50));
  SubprocessOptions options;
  options.pass_fds = {second.get(), first.get()};
  EXPECT_EQ(OutputOf("for n in $(seq 0 200); do [ -e /proc/$$/fd/$n ] && printf '%s ' $n; done; "
                     "readlink /proc/$$/fd/0 /proc/$$/fd/3 /proc/$$/fd/4",
                     options),
            "0 1 2 3 4 /dev/null\n/dev/zero\n/etc/hostname\n");
}

TEST(SubprocessTest, SignalsAreAtTheirDefaults) {
  signal(SIGPIPE, SIG_IGN);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  const std::string masks = OutputOf("sed -n 's/^Sig\\(Blk\\|Ign\\):[^0-9]*//p' /proc/self/status");
  pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
  std::istringstream in(masks);
  uint64_t blocks = 1;
  uint64_t ignores = 1;
  ASSERT_TRUE(in >> std::hex >> blocks >> ignores) << masks;
  EXPECT_EQ(blocks, 0u);
  EXPECT_EQ(ignores & 0x7fffffff, 0u);  // glibc keeps 32 and 33 for itself
}

TEST(SubprocessTest, KeepsTheTailOfEachStream) {
  SubprocessOptions options;
  options.out = ChildOutput::Tail(10);
  options.err = ChildOutput::Tail(100);
  auto process = Shell(
      "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done; echo oops >&2", options);
  EXPECT_TRUE(process->Wait(kLong)->ok());
  EXPECT_EQ(process->StdoutTail(), "line 4999\n");
  EXPECT_EQ(process->StderrTail(), "oops\n");
}

TEST(SubprocessTest, StderrCanFollowStdout) {
  SubprocessOptions options;
  options.err = ChildOutput::SameAsStdout();
  EXPECT_EQ(OutputOf("echo a; echo b >&2; echo c", options), "a\nb\nc\n");
}

TEST(SubprocessTest, AppendsToAFileOfMode0600) {
  const std::string path = ::testing::TempDir() + "/subprocess.log";
  std::filesystem::remove(path);
  for (int i = 0; i < 2; ++i) {
    SubprocessOptions options;
    options.out = ChildOutput::File(path);
    options.err = ChildOutput::File(path);
    EXPECT_TRUE(Shell("echo out; echo err >&2", options)->Wait(kLong)->ok());
  }
  EXPECT_EQ(Contents(path), "out\nerr\nout\nerr\n");
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms{0600});
}

TEST(SubprocessTest, GivesPipesToTheCaller) {
  SubprocessOptions options;
  options.out = ChildOutput::Pipe();
  auto process = Shell("echo hello", options);
  const UniqueFd pipe = process->TakeStdout();
  EXPECT_FALSE(process->TakeStdout().valid());
  std::array<char, 64> buffer;
  EXPECT_EQ(read(pipe.get(), buffer.data(), buffer.size()), 6);
  EXPECT_EQ(read(pipe.get(), buffer.data(), buffer.size()), 0);
}

TEST(SubprocessTest, StopIsGentleFirst) {
  SubprocessOptions options;
  options.out = ChildOutput::Pipe();
  auto process = Shell("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done", options);
  const UniqueFd pipe = process->TakeStdout();
  std::array<char, 64> buffer;
  ASSERT_EQ(read(pipe.get(), buffer.data(), buffer.size()), 6);
  EXPECT_EQ(process->Stop(kLong).exit_code, 7);
}

TEST(SubprocessTest, StopKillsTheWholeGroupThatWillNotGo) {
  SubprocessOptions options;
  options.out = ChildOutput::Pipe();
  auto process =
      Shell("trap '' TERM; (trap '' TERM; while :; do sleep 0.01; done) & echo $!; wait", options);
  const UniqueFd pipe = process->TakeStdout();
  std::array<char, 64> buffer = {};
  ASSERT_GT(read(pipe.get(), buffer.data(), buffer.size() - 1), 0);
  const pid_t grandchild = std::atoi(buffer.data());
  ASSERT_GT(grandchild, 1);
  EXPECT_EQ(process->Stop(absl::Milliseconds(20)).signal, SIGKILL);
  ExpectEnds(grandchild);
}

TEST(SubprocessTest, WhatTheChildLeavesBehindIsKilled) {
  auto process = Shell("sleep 1000 & echo $!");  // holds stdout open, too
  EXPECT_TRUE(process->Wait(kLong)->ok());
  ExpectEnds(std::atoi(process->StdoutTail().c_str()));
}

TEST(SubprocessTest, AFugitiveFromTheGroupHoldsUpNobody) {
  SubprocessOptions options;
  options.working_directory = ::testing::TempDir();
  const pid_t fugitive = std::atoi(
      OutputOf("rm -f gone; setsid sh -c 'echo $$ >part; mv part gone; exec sleep 1000' & "
               "while [ ! -e gone ]; do sleep 0.01; done; cat gone",
               options)
          .c_str());
  ASSERT_GT(fugitive, 1);
  kill(fugitive, SIGKILL);
}

TEST(SubprocessTest, DestructionEndsTheChild) {
  auto process = Shell("exec sleep 1000");
  const pid_t pid = process->pid();
  process.reset();
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(SubprocessTest, TellsItsNumberBeforeItsProgramStarts) {
  const std::string made = ::testing::TempDir() + "/made-by-the-program";
  std::filesystem::remove(made);
  pid_t heard = 0;
  SubprocessOptions options;
  options.out = ChildOutput::Tail(64);
  options.before_start = [&](pid_t pid) {
    heard = pid;
    EXPECT_FALSE(std::filesystem::exists(made));
    return absl::OkStatus();
  };
  auto process = Shell("echo $$; cat /proc/$$/stat | cut -d ' ' -f 6; touch " + made, options);
  EXPECT_TRUE(process->Wait(kLong)->ok());
  EXPECT_GT(heard, 1);
  // Its own number, and that of its session.
  EXPECT_EQ(process->StdoutTail(), absl::StrCat(heard, "\n", heard, "\n"));
  EXPECT_TRUE(std::filesystem::exists(made));
}

TEST(SubprocessTest, DoesNotStartWhatMustNotStart) {
  const std::string made = ::testing::TempDir() + "/must-not-be-made";
  std::filesystem::remove(made);
  pid_t heard = 0;
  SubprocessOptions options;
  options.argv = {"/usr/bin/touch", made};
  options.before_start = [&](pid_t pid) {
    heard = pid;
    return absl::AbortedError("not now");
  };
  EXPECT_EQ(Subprocess::Start(options).status(), absl::AbortedError("not now"));
  EXPECT_EQ(kill(heard, 0), -1);
  EXPECT_FALSE(std::filesystem::exists(made));
  options.argv = {"/no/such/program"};
  options.before_start = [](pid_t) { return absl::OkStatus(); };
  EXPECT_EQ(Subprocess::Start(options).status().code(), absl::StatusCode::kNotFound);
}

TEST(SubprocessTest, ProgramOfAHeldChildIsFoundInThePath) {
  SubprocessOptions options;
  options.argv = {"true"};
  options.before_start = [](pid_t) { return absl::OkStatus(); };
  const auto process = Subprocess::Start(std::move(options));
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_TRUE((*process)->Wait(kLong)->ok());
}

TEST(SubprocessTest, RefusesWhatCannotRun) {
  EXPECT_EQ(ReasonOf(Subprocess::Start({}).status()), "INVALID_COMMAND");
  EXPECT_EQ(ReasonOf(Subprocess::Start({.argv = {"true"}, .environment = {"NOVALUE"}}).status()),
            "INVALID_COMMAND");
  const auto missing = Subprocess::Start({.argv = {"/no/such/program"}});
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find("/no/such/program"), absl::string_view::npos);
  const auto folder = Subprocess::Start({.argv = {"true"}, .working_directory = "/no/such/dir"});
  EXPECT_NE(folder.status().message().find("/no/such/dir"), absl::string_view::npos);
  EXPECT_EQ(Subprocess::Start({.argv = {"/etc/passwd"}}).status().code(),
            absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace muster
