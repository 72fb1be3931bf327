// Real processes and a real disk; the test reads the outbox as the root relay does.
#include "services/agent/jobs/job_process.h"

#include <signal.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/agent/jobs/testing/memory_contents.h"
#include "services/common/base/simulated_disk.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

const std::string kJob(32, 'a');

// The records of a job.
struct Records {
  std::string out;
  std::string err;
  int64_t cut = 0;
  int cuts = 0;
  int started = 0;
  v1::JobRecord::Final final;
};

bool HasEnded(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  const std::string stat((std::istreambuf_iterator<char>(file)), {});
  return stat.empty() || stat.find(") Z") != std::string::npos;
}

class JobProcessTest : public ::testing::Test {
 protected:
  JobProcessTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    plan_.directory = "/";
    plan_.time_limit = absl::Minutes(1);
    plan_.max_output = int64_t{16} << 20;
  }

  Records Shell(const std::string& script) {
    plan_.argv = {"/bin/sh", "-c", script};
    return Run();
  }

  Records Run() {
    Start();
    return Finish();
  }

  void Start() {
    job_ = NodeJobFolder::Create(PosixFileOps(), folder_, kJob, "n1", {}).value();
    process_ = std::make_unique<JobProcess>(host_, *job_, kJob, plan_, [] {});
    thread_ = std::thread([this] { process_->Run(); });
  }

  Records Finish() {
    thread_.join();
    const Records all = Read();
    std::filesystem::remove_all(folder_ + "/" + kJob);
    return all;
  }

  // Returns all records up to now.
  Records Read() {
    Records all;
    for (job_->log()->Rewind();;) {
      v1::JobRecords next;
      EXPECT_TRUE(job_->log()->NextRecords(1 << 20, nullptr, &next).ok());
      if (next.records().empty()) return all;
      for (const v1::JobRecord& record : next.records()) Add(record, all);
      job_->log()->Ack(next.records().rbegin()->sequence());
    }
  }

  static void Add(const v1::JobRecord& record, Records& all) {
    if (record.has_started()) ++all.started;
    if (record.has_output()) {
      EXPECT_LE(record.output().data().size(), 32 * 1024);
      (record.output().stream() == v1::JOB_STREAM_STDERR ? all.err : all.out) +=
          record.output().data();
    }
    if (record.has_cut()) {
      all.cut += record.cut().bytes();
      ++all.cuts;
    }
    if (record.has_final()) all.final = record.final();
  }

  // Waits until the command has written its process id, or that of a child, to the file "pid".
  pid_t AwaitPid() {
    pid_t pid = 0;
    EXPECT_TRUE(testing::Await([&] { return static_cast<bool>(std::ifstream(pid_file_) >> pid); }));
    return pid;
  }

  const std::string folder_ = ::testing::TempDir() + "/job-process";
  const std::string pid_file_ = folder_ + "/pid";
  // Shell code that writes $PID to the file.
  const std::string write_pid_ =
      "echo $PID > " + pid_file_ + ".part; mv " + pid_file_ + ".part " + pid_file_ + "; ";
  // Shell code that runs its argument outside of the group, with the stdout of the command.
  const std::string leave_group_ = "setsid sh -c 'PID=$$; " + write_pid_ + "exec $0' ";
  const std::string await_pid_ = "until test -e " + pid_file_ + "; do sleep 0.01; done; ";
  SimulatedDisk disk_;
  JobPlan plan_;
  SpoolQuota quota_{int64_t{1} << 30};
  DockerEngine docker_{"/none"};
  testing::MemoryContents contents_;
  const JobHost host_{"/agent", "n1", quota_, docker_, contents_};
  std::unique_ptr<NodeJobFolder> job_;
  std::unique_ptr<JobProcess> process_;
  std::thread thread_;
};

TEST_F(JobProcessTest, OutputAndExitCodeOfCommandAreRecorded) {
  const Records all = Shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(all.started, 1);
  EXPECT_EQ(all.out, "out\n");
  EXPECT_EQ(all.err, "err\n");
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(all.final.exit_code(), 3);
  EXPECT_EQ(all.final.stdout_bytes(), 4);
  EXPECT_EQ(all.final.stderr_bytes(), 4);
}

TEST_F(JobProcessTest, SignalThatEndedCommandIsRecorded) {
  const Records all = Shell("kill -SEGV $$");
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(all.final.signal(), SIGSEGV);
}

TEST_F(JobProcessTest, CommandHasNoShellNoStdinAndASmallEnvironment) {
  ASSERT_EQ(setenv("MUSTER_CLIENT_KEY", "secret", 1), 0);
  plan_.environment = {"GREETING=hello; rm -rf /"};
  plan_.argv = {"/bin/echo", "$HOME;", "*"};
  EXPECT_EQ(Run().out, "$HOME; *\n");
  EXPECT_EQ(Shell("echo $GREETING").out, "hello; rm -rf /\n");
  const Records all = Shell("readlink /proc/self/fd/0; env | cut -d = -f 1 | sort; pwd");
  EXPECT_EQ(all.out.substr(0, 10), "/dev/null\n");
  EXPECT_EQ(all.out.find("MUSTER_CLIENT_KEY"), std::string::npos);
  EXPECT_NE(all.out.find("MUSTER_JOB\n"), std::string::npos);
  EXPECT_NE(all.out.find("PATH\n"), std::string::npos);
  EXPECT_EQ(all.out.substr(all.out.size() - 2), "/\n");
}

TEST_F(JobProcessTest, OutputPastTheLimitIsCutAndTheCommandContinues) {
  plan_.max_output = 1 << 20;
  const Records all = Shell("head -c 50000000 /dev/zero; echo end >&2");
  EXPECT_EQ(all.out, std::string(1 << 20, '\0'));
  EXPECT_EQ(all.final.stdout_bytes(), 50'000'000);
  EXPECT_EQ(all.cut, 50'000'000 + 4 - (1 << 20));
  EXPECT_EQ(all.cuts, 2);
  EXPECT_EQ(all.final.exit_code(), 0);
}

TEST_F(JobProcessTest, OutputStaysWithinTheQuotaOfAllJobs) {
  quota_.Reserve((int64_t{1} << 30) - 300 * 1024);
  const Records first = Shell("head -c 250000 /dev/zero");
  EXPECT_EQ(first.cut, 0);
  EXPECT_EQ(first.out.size(), 250'000);
  const Records second = Shell("head -c 250000 /dev/zero");
  EXPECT_GT(second.cut, 0);
  EXPECT_LE(first.out.size() + second.out.size(), 300 * 1024);
  EXPECT_EQ(second.out.size() + static_cast<size_t>(second.cut), 250'000);
}

TEST_F(JobProcessTest, DiscardedOutputIsOnlyCounted) {
  plan_.keep_output = false;
  const Records all = Shell("echo hello");
  EXPECT_EQ(all.out, "");
  EXPECT_EQ(all.cuts, 0);
  EXPECT_EQ(all.final.stdout_bytes(), 6);
}

TEST_F(JobProcessTest, CommandPastItsTimeLimitIsEndedWithItsGroup) {
  plan_.time_limit = absl::Milliseconds(200);
  const Records all = Shell("sleep 1000 & PID=$!; " + write_pid_ + "wait");
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_TIMED_OUT);
  EXPECT_EQ(all.final.signal(), SIGTERM);
  const pid_t child = AwaitPid();
  EXPECT_TRUE(testing::Await([&] { return HasEnded(child); }));
}

TEST_F(JobProcessTest, CancelEndsAGroupThatIgnoresSigterm) {
  plan_.argv = {"/bin/sh", "-c",
                "trap '' TERM; sleep 1000 & PID=$!; " + write_pid_ + "wait; sleep 1000"};
  Start();
  const pid_t child = AwaitPid();
  process_->Stop(JobStop::kCancelled);
  process_->Stop(JobStop::kAgentStops);  // without effect
  const Records all = Finish();
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_CANCELLED);
  EXPECT_EQ(all.final.signal(), SIGKILL);
  EXPECT_TRUE(testing::Await([&] { return HasEnded(child); }));
}

TEST_F(JobProcessTest, CommandThatTheAgentStopsIsLost) {
  plan_.argv = {"/bin/sh", "-c", "PID=$$; " + write_pid_ + "exec sleep 1000"};
  Start();
  AwaitPid();
  process_->Stop(JobStop::kAgentStops);
  const Records all = Finish();
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_LOST);
  EXPECT_EQ(all.final.reason(), "AGENT_STOPPED");
}

TEST_F(JobProcessTest, ProcessThatCommandLeavesBehindIsKilledAndDelaysNothing) {
  const Records all = Shell("sleep 1000 & PID=$!; " + write_pid_ + "echo on");  // holds stdout
  EXPECT_EQ(all.out, "on\n");
  EXPECT_EQ(all.final.exit_code(), 0);
  const pid_t child = AwaitPid();
  EXPECT_TRUE(testing::Await([&] { return HasEnded(child); }));
}

TEST_F(JobProcessTest, ProcessThatLeftTheGroupDoesNotDelayTheFinalRecord) {
  const Records all = Shell(leave_group_ + "'sleep 1000' & " + await_pid_ + "echo on");
  EXPECT_EQ(all.out, "on\n");
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(all.final.exit_code(), 0);
  const pid_t fugitive = AwaitPid();
  EXPECT_FALSE(HasEnded(fugitive));  // it holds stdout
  kill(fugitive, SIGKILL);
}

TEST_F(JobProcessTest, OutputOfAProcessThatLeftTheGroupIsBounded) {
  plan_.max_output = 1 << 20;
  const Records all = Shell(leave_group_ + "yes & " + await_pid_);
  EXPECT_EQ(all.final.exit_code(), 0);
  EXPECT_LE(all.out.size(), 1 << 20);
  // Its pipe is closed.
  const pid_t fugitive = AwaitPid();
  EXPECT_TRUE(testing::Await([&] { return HasEnded(fugitive); }));
}

TEST_F(JobProcessTest, RecordThatDoesNotFitOnTheDiskIsStoredLater) {
  job_ = NodeJobFolder::Create(disk_, "", kJob, "n1", {}).value();
  plan_.argv = {"/bin/echo", "x"};
  disk_.FailAt(SimulatedDisk::Call::kWrite, 3, ENOSPC);  // after the process and its sync
  JobProcess(host_, *job_, kJob, plan_, [] {}).Run();
  const Records all = Read();
  EXPECT_EQ(all.started, 1);
  EXPECT_EQ(all.out, "x\n");
  EXPECT_EQ(all.final.exit_code(), 0);
}

TEST_F(JobProcessTest, CutThatDoesNotFitOnTheDiskIsReportedAtTheEnd) {
  job_ = NodeJobFolder::Create(disk_, "", kJob, "n1", {}).value();
  plan_.argv = {"/bin/echo", "0123456789 and more"};
  plan_.max_output = 10;
  disk_.FailAt(SimulatedDisk::Call::kWrite, 5, ENOSPC);  // after the start and the output
  JobProcess(host_, *job_, kJob, plan_, [] {}).Run();
  const Records all = Read();
  EXPECT_EQ(all.out, "0123456789");
  EXPECT_EQ(all.cut, 10);
  EXPECT_EQ(all.final.stdout_bytes(), 20);
}

TEST_F(JobProcessTest, StopOfTheAgentEndsTheRetriesOfACancelledCommand) {
  job_ = NodeJobFolder::Create(disk_, "", kJob, "n1", {}).value();
  plan_.argv = {"/bin/sh", "-c", "PID=$$; " + write_pid_ + "exec sleep 1000"};
  process_ = std::make_unique<JobProcess>(host_, *job_, kJob, plan_, [] {});
  thread_ = std::thread([this] { process_->Run(); });
  AwaitPid();
  disk_.PowerOffAt(1);  // every write fails from now on
  process_->Stop(JobStop::kCancelled);
  process_->Stop(JobStop::kAgentStops);
  thread_.join();
}

TEST_F(JobProcessTest, TimeLimitAppliesWhileTheDiskIsFull) {
  job_ = NodeJobFolder::Create(disk_, "", kJob, "n1", {}).value();
  plan_.argv = {"/bin/sh", "-c", "PID=$$; " + write_pid_ + "exec sleep 1000"};
  plan_.time_limit = absl::Milliseconds(500);
  process_ = std::make_unique<JobProcess>(host_, *job_, kJob, plan_, [] {});
  disk_.PowerOffAt(3);  // after the mark of the process, every write fails
  thread_ = std::thread([this] { process_->Run(); });
  const pid_t pid = AwaitPid();
  EXPECT_TRUE(testing::Await([&] { return HasEnded(pid); }));
  process_->Stop(JobStop::kAgentStops);
  thread_.join();
}

// Docker, or the pull of the image, took the whole time.
TEST_F(JobProcessTest, ContainerThatDidNotStartInTimeHasNotRun) {
  plan_.image = "a@sha256:" + std::string(64, 'a');
  plan_.time_limit = absl::Nanoseconds(1);
  const Records all = Run();
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_TIMED_OUT);
  EXPECT_EQ(all.final.reason(), "TIME_LIMIT");
  EXPECT_NE(all.final.detail().find("its container did not start within 100ms: "),
            std::string::npos)
      << all.final.detail();
  EXPECT_NE(all.final.detail().find("/none"), std::string::npos) << all.final.detail();
  EXPECT_EQ(all.started, 0);
}

TEST_F(JobProcessTest, CommandThatCannotStartFailsWithTheReason) {
  plan_.argv = {"/no/such/program"};
  Records all = Run();
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_FAILED);
  EXPECT_EQ(all.final.reason(), "COMMAND_NOT_STARTED");
  EXPECT_NE(all.final.detail().find("/no/such/program"), std::string::npos);
  EXPECT_EQ(all.started, 0);
  plan_.argv = {"/bin/true"};
  plan_.user = "no-such-user";
  all = Run();
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_FAILED);
  EXPECT_NE(all.final.detail().find("no-such-user"), std::string::npos);
}

// Its container, state and secrets are removed then.
TEST_F(JobProcessTest, FinalRecordIsDurableAtTheEnd) {
  plan_.argv = {"/bin/true"};
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SimulatedDisk disk;
    ASSERT_TRUE(MakeFolders(disk, "/jobs").ok());
    {
      const auto job = NodeJobFolder::Create(disk, "/jobs", kJob, "n1", {}).value();
      JobProcess(host_, *job, kJob, plan_, [] {}).Run();
      EXPECT_TRUE(job->log()->has_final());
    }
    disk.Crash(seed);
    EXPECT_TRUE(NodeJobFolder::Open(disk, "/jobs", kJob, "n1").value()->log()->has_final()) << seed;
  }
}

}  // namespace
}  // namespace muster
