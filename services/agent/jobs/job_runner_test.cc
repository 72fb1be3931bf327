// Jobs with real processes and a real disk; the test plays the root relay.
#include "services/agent/jobs/job_runner.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/mutex.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/subprocess.h"
#include "testing/fixtures/test_commands.h"

namespace muster {
namespace {

constexpr char kNode[] = "n1";
constexpr char kAnything[] = "commands: [{argv: ['**']}]";
constexpr absl::Duration kLong = absl::Minutes(1);  // far more than any of this takes

// The records of a job that the root relay has.
struct ReceivedJob {
  std::string out;
  std::string err;
  int64_t cut = 0;
  int cuts = 0;
  int started = 0;
  std::optional<v1::JobRecord::Final> final;
};

class JobRunnerTest : public ::testing::Test {
 protected:
  JobRunnerTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    SetPolicy(kAnything);
    Begin();
  }
  ~JobRunnerTest() override { End(); }

  void SetPolicy(std::string_view text) {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/policy.yaml", text).ok());
  }

  // Starts an agent, which is attached all the time.
  void Begin() {
    JobRunnerOptions options{
        .trust = {folder_, kTestFleet, kNode, commands_.authority().certificate()}};
    options.max_parallel = max_parallel_;
    options.max_spool = max_spool_;
    auto opened = JobRunner::Open(std::move(options), [this] {
      MutexLock lock(mutex_);
      news_ = true;
      wake_.NotifyAll();
    });
    ASSERT_TRUE(opened.ok()) << opened.status();
    runner_ = *std::move(opened);
    {
      MutexLock lock(mutex_);
      stop_ = false;
      news_ = true;  // a new attachment requests all records
    }
    root_ = std::thread([this] { PlayRoot(); });
  }

  void End() {
    {
      MutexLock lock(mutex_);
      stop_ = true;
      wake_.NotifyAll();
    }
    if (root_.joinable()) root_.join();
    runner_.reset();
  }

  void PlayRoot() {
    MutexLock lock(mutex_);
    for (;;) {
      while (!news_ && !stop_) wake_.Wait(mutex_);
      if (stop_) return;
      news_ = false;
      lock.Unlock();
      v1::JobRecords records;
      while (runner_->NextRecords(&records)) {
        EXPECT_LE(records.ByteSizeLong(), 256 * 1024);
        Store(records);
        records.Clear();
      }
      lock.Lock();
    }
  }

  void Store(const v1::JobRecords& records) {
    v1::RecordsAck ack;
    {
      MutexLock lock(mutex_);
      for (const v1::JobRecord& record : records.records()) {
        EXPECT_EQ(record.node(), kNode);
        int64_t& reached = reached_[record.job()];
        if (record.sequence() > reached) {  // otherwise it is a repeated one
          EXPECT_EQ(record.sequence(), reached + 1);
          reached = record.sequence();
          StoreOne(record, received_[record.job()]);
        }
        auto& received = *ack.add_reached();
        received.set_job(record.job());
        received.set_node(kNode);
        received.set_sequence(reached);
      }
      stored_.NotifyAll();
    }
    if (acks_) runner_->HandleAcks(ack);
  }

  static void StoreOne(const v1::JobRecord& record, ReceivedJob& received) {
    EXPECT_FALSE(received.final) << "a record after the final one";
    if (record.has_started()) ++received.started;
    if (record.has_output()) {
      EXPECT_LE(record.output().data().size(), 32 * 1024);
      (record.output().stream() == v1::JOB_STREAM_STDERR ? received.err : received.out) +=
          record.output().data();
    }
    if (record.has_cut()) {
      received.cut += record.cut().bytes();
      ++received.cuts;
    }
    if (record.has_final()) received.final = record.final();
  }

  // Waits until the root relay has enough records of the job.
  ReceivedJob Await(const std::string& job, const std::function<bool(const ReceivedJob&)>& enough) {
    MutexLock lock(mutex_);
    EXPECT_TRUE(stored_.WaitFor(mutex_, kLong, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return enough(received_[job]);
    }));
    return received_[job];
  }
  ReceivedJob AwaitFinal(const std::string& job) {
    ReceivedJob received = Await(job, [](const ReceivedJob& t) { return t.final.has_value(); });
    if (!received.final) received.final.emplace();
    return received;
  }

  ReceivedJob Run(const v1::Command& command) {
    runner_->Receive(commands_.ForNode(command, kNode));
    return AwaitFinal(command.job());
  }
  ReceivedJob Shell(const std::string& script) {
    return Run(TestCommands::Exec({"/bin/sh", "-c", script}));
  }

  void ExpectRefused(const v1::JobCommand& sent, const std::string& reason,
                     v1::JobOutcome outcome = v1::JOB_OUTCOME_REFUSED) {
    runner_->Receive(sent);
    const ReceivedJob received = AwaitFinal(sent.job());
    EXPECT_EQ(received.final->outcome(), outcome);
    EXPECT_EQ(received.final->reason(), reason) << received.final->detail();
    EXPECT_EQ(received.started, 0);
  }

  const std::string folder_ = ::testing::TempDir() + "/node";
  size_t max_parallel_ = 16;
  int64_t max_spool_ = int64_t{1} << 30;
  TestCommands commands_;
  std::unique_ptr<JobRunner> runner_;
  std::thread root_;
  Mutex mutex_;
  CondVar wake_;
  CondVar stored_;
  bool news_ ABSL_GUARDED_BY(mutex_) = true;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> acks_ = true;
  std::map<std::string, int64_t> reached_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, ReceivedJob> received_ ABSL_GUARDED_BY(mutex_);
};

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// An agent in a separate process, for a test that kills it.
constexpr char kLifeVariable[] = "MUSTER_TEST_LIFE";
TEST(KilledAgent, RunsUntilItIsKilled) {
  const char* folder = std::getenv(kLifeVariable);
  if (folder == nullptr) GTEST_SKIP() << "started by another test";
  v1::JobCommand sent;
  ASSERT_TRUE(sent.ParseFromString(Contents(std::string(folder) + "/sent")));
  const Certificate ca = Certificate::FromPem(Contents(std::string(folder) + "/ca.pem")).value();
  auto runner = JobRunner::Open({.trust = {folder, kTestFleet, kNode, ca}}, [] {});
  ASSERT_TRUE(runner.ok()) << runner.status();
  (*runner)->Receive(sent);
  for (;;) pause();
}

bool WaitUntil(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + absl::ToChronoSeconds(kLong);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

bool HasEnded(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  const std::string stat((std::istreambuf_iterator<char>(file)), {});
  return stat.empty() || stat.find(") Z") != std::string::npos;
}

TEST_F(JobRunnerTest, OutputAndExitCodeOfCommandAreRecorded) {
  const ReceivedJob received = Shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(received.started, 1);
  EXPECT_EQ(received.out, "out\n");
  EXPECT_EQ(received.err, "err\n");
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(received.final->exit_code(), 3);
  EXPECT_EQ(received.final->stdout_bytes(), 4);
  EXPECT_EQ(received.final->stderr_bytes(), 4);
}

TEST_F(JobRunnerTest, SignalThatEndedCommandIsRecorded) {
  const ReceivedJob received = Shell("kill -SEGV $$");
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(received.final->signal(), SIGSEGV);
}

TEST_F(JobRunnerTest, CommandHasNoShellNoStdinAndASmallEnvironment) {
  ASSERT_EQ(setenv("MUSTER_CLIENT_KEY", "secret", 1), 0);
  EXPECT_EQ(Run(TestCommands::Exec({"/bin/echo", "$HOME;", "*"})).out, "$HOME; *\n");
  const ReceivedJob received = Shell("readlink /proc/self/fd/0; env | cut -d = -f 1 | sort; pwd");
  EXPECT_EQ(received.out.substr(0, 10), "/dev/null\n");
  EXPECT_EQ(received.out.find("MUSTER_CLIENT_KEY"), std::string::npos);
  EXPECT_NE(received.out.find("MUSTER_JOB\n"), std::string::npos);
  EXPECT_NE(received.out.find("PATH\n"), std::string::npos);
  EXPECT_EQ(received.out.substr(received.out.size() - 2), "/\n");
}

TEST_F(JobRunnerTest, SignedVariableIsSetIfTheRuleAdmitsIt) {
  SetPolicy("commands: [{argv: [/bin/sh, '**'], environment: [GREETING]}]");
  v1::Command command = TestCommands::Exec({"/bin/sh", "-c", "echo $GREETING"});
  command.add_environment()->set_name("GREETING");
  command.mutable_environment(0)->set_value("hello; rm -rf /");
  EXPECT_EQ(Run(command).out, "hello; rm -rf /\n");
  command.set_job(TestCommands::Exec({}).job());
  command.mutable_environment(0)->set_name("LD_PRELOAD");
  ExpectRefused(commands_.ForNode(command, kNode), "POLICY_REFUSED");
}

TEST_F(JobRunnerTest, CommandOutsideThePolicyIsRefusedWithArgvAndFile) {
  SetPolicy("commands: [{argv: [/bin/true]}]");
  v1::JobCommand sent = commands_.ForNode(TestCommands::Exec({"/bin/ls", "-l"}), kNode);
  ExpectRefused(sent, "POLICY_REFUSED");
  const std::string detail = AwaitFinal(sent.job()).final->detail();
  EXPECT_NE(detail.find("/bin/ls -l"), std::string::npos) << detail;
  EXPECT_NE(detail.find(folder_ + "/policy.yaml"), std::string::npos) << detail;
  SetPolicy("commands: [");
  ExpectRefused(commands_.ForNode(TestCommands::Exec({"/bin/true"}), kNode), "POLICY_UNUSABLE");
  std::filesystem::remove(folder_ + "/policy.yaml");
  ExpectRefused(commands_.ForNode(TestCommands::Exec({"/bin/true"}), kNode), "POLICY_REFUSED");
}

TEST_F(JobRunnerTest, RefusedCommandDoesNotRunLater) {
  SetPolicy("");
  const v1::JobCommand sent = commands_.ForNode(TestCommands::Exec({"/bin/true"}), kNode);
  ExpectRefused(sent, "POLICY_REFUSED");
  ASSERT_TRUE(runner_->AwaitAcked(absl::Minutes(1)));
  SetPolicy(kAnything);
  runner_->Receive(sent);
  End();
  Begin();
  runner_->Receive(sent);
  EXPECT_EQ(Shell("exit 0").final->exit_code(), 0);
  EXPECT_EQ(AwaitFinal(sent.job()).started, 0);
}

TEST_F(JobRunnerTest, CommandWithAChangedByteIsRefused) {
  const v1::JobCommand good = commands_.ForNode(TestCommands::Exec({"/bin/true"}), kNode);
  for (const size_t place :
       {size_t{0}, good.command().command().size() / 2, good.command().command().size() - 1}) {
    v1::JobCommand sent = good;
    (*sent.mutable_command()->mutable_command())[place] ^= 1;
    sent.set_job(TestCommands::Exec({}).job());
    ExpectRefused(sent, "COMMAND_REFUSED");
  }
  v1::JobCommand unsigned_command = good;
  unsigned_command.mutable_command()->clear_signature();
  unsigned_command.set_job(TestCommands::Exec({}).job());
  ExpectRefused(unsigned_command, "COMMAND_REFUSED");
  v1::JobCommand other_id = good;
  other_id.set_job(TestCommands::Exec({}).job());
  ExpectRefused(other_id, "COMMAND_REFUSED");
  // The good one still runs.
  runner_->Receive(good);
  EXPECT_EQ(AwaitFinal(good.job()).final->outcome(), v1::JOB_OUTCOME_EXITED);
}

TEST_F(JobRunnerTest, CommandOfAnotherAuthorityIsRefused) {
  TestCommands others;
  ExpectRefused(others.ForNode(TestCommands::Exec({"/bin/true"}), kNode), "COMMAND_REFUSED");
}

TEST_F(JobRunnerTest, CommandForAnotherNodeIsRefused) {
  v1::Command command = TestCommands::Exec({"/bin/true"});
  TestCommands::SetTargets({"n2", "n3"}, &command);
  ExpectRefused(commands_.ForNode(command, kNode), "TARGET_REFUSED");
  command = TestCommands::Exec({"/bin/true"});
  ExpectRefused(commands_.ForNode(command, "n2"), "TARGET_REFUSED");
}

TEST_F(JobRunnerTest, CommandOutsideItsTimeIsRefused) {
  v1::Command past = TestCommands::Exec({"/bin/true"});
  past.mutable_not_before()->set_seconds(absl::ToUnixSeconds(absl::Now() - absl::Hours(2)));
  past.mutable_not_after()->set_seconds(absl::ToUnixSeconds(absl::Now() - absl::Hours(1)));
  ExpectRefused(commands_.ForNode(past, kNode), "COMMAND_EXPIRED", v1::JOB_OUTCOME_EXPIRED);
  v1::Command future = TestCommands::Exec({"/bin/true"});
  future.mutable_not_before()->set_seconds(absl::ToUnixSeconds(absl::Now() + absl::Hours(1)));
  future.mutable_not_after()->set_seconds(absl::ToUnixSeconds(absl::Now() + absl::Hours(2)));
  ExpectRefused(commands_.ForNode(future, kNode), "COMMAND_EARLY");
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/jobs/" + future.job()));
}

TEST_F(JobRunnerTest, EarlyCommandForAnotherNodeOrOfARevokedSignerIsNotStored) {
  EXPECT_TRUE(runner_->ReceiveRevocations(commands_.Revoke("mallory", 3)).ok());
  v1::Command future = TestCommands::Exec({"/bin/true"});
  future.mutable_not_before()->set_seconds(absl::ToUnixSeconds(absl::Now() + absl::Hours(1)));
  future.mutable_not_after()->set_seconds(absl::ToUnixSeconds(absl::Now() + absl::Hours(2)));
  ExpectRefused(commands_.ForNode(future, "n2"), "TARGET_REFUSED");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/jobs/" + future.job()));
  future.set_job(TestCommands::Exec({}).job());
  ExpectRefused(commands_.ForNode(future, kNode, "mallory"), "OPERATOR_REVOKED");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/jobs/" + future.job()));
}

TEST_F(JobRunnerTest, CommandOfRevokedOperatorIsRefusedAlsoAfterARestart) {
  EXPECT_TRUE(runner_->ReceiveRevocations(commands_.Revoke("mallory", 3)).ok());
  EXPECT_TRUE(runner_->ReceiveRevocations(commands_.Revoke("alice", 2)).ok());  // older
  EXPECT_EQ(runner_->revocations_version(), 3);
  EXPECT_FALSE(runner_->ReceiveRevocations(TestCommands().Revoke("alice", 9)).ok());
  End();
  Begin();
  EXPECT_EQ(runner_->revocations_version(), 3);
  ExpectRefused(commands_.ForNode(TestCommands::Exec({"/bin/true"}), kNode, "mallory"),
                "OPERATOR_REVOKED");
  EXPECT_EQ(Shell("exit 0").final->exit_code(), 0);
}

TEST_F(JobRunnerTest, RepeatedCommandRunsOnce) {
  const std::string marks = folder_ + "/marks";
  const v1::JobCommand sent =
      commands_.ForNode(TestCommands::Exec({"/bin/sh", "-c", "echo x >> " + marks}), kNode);
  acks_ = false;
  for (int i = 0; i < 3; ++i) runner_->Receive(sent);
  AwaitFinal(sent.job());
  runner_->Receive(sent);
  End();
  Begin();
  runner_->Receive(sent);  // not acked: sent again by the next process
  acks_ = true;
  runner_->Rewind();
  ASSERT_TRUE(runner_->AwaitAcked(absl::Minutes(1)));
  ASSERT_TRUE(WaitUntil(
      [&] { return !std::filesystem::exists(folder_ + "/jobs/" + sent.job() + "/records"); }));
  runner_->Receive(sent);
  End();
  Begin();
  runner_->Receive(sent);
  EXPECT_EQ(Shell("cat " + marks).out, "x\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/jobs/" + sent.job() + "/records"));
}

TEST_F(JobRunnerTest, ReplayedCommandIsRefused) {
  const v1::JobCommand sent = commands_.ForNode(TestCommands::Exec({"/bin/true"}), kNode);
  runner_->Receive(sent);
  EXPECT_EQ(AwaitFinal(sent.job()).started, 1);
  ASSERT_TRUE(WaitUntil(
      [&] { return !std::filesystem::exists(folder_ + "/jobs/" + sent.job() + "/records"); }));
  {
    MutexLock lock(mutex_);  // a root relay without its records
    reached_.erase(sent.job());
    received_.erase(sent.job());
  }
  ExpectRefused(sent, "REPLAYED");
}

TEST_F(JobRunnerTest, OutputPastTheLimitIsCutAndTheCommandContinues) {
  SetPolicy("commands: [{argv: ['**'], max_output: 1MiB}]");
  const ReceivedJob received = Shell("head -c 50000000 /dev/zero; echo end >&2");
  EXPECT_EQ(received.out, std::string(1 << 20, '\0'));
  EXPECT_EQ(received.final->stdout_bytes(), 50'000'000);
  EXPECT_EQ(received.cut, 50'000'000 + 4 - (1 << 20));
  EXPECT_EQ(received.cuts, 2);
  EXPECT_EQ(received.final->exit_code(), 0);
}

TEST_F(JobRunnerTest, UnackedOutputIsBoundedInMemoryAndOnDisk) {
  acks_ = false;
  SetPolicy("commands: [{argv: ['**'], max_output: 1MiB}]");
  const v1::Command command = TestCommands::Exec({"/bin/sh", "-c", "yes | head -c 30000000"});
  runner_->Receive(commands_.ForNode(command, kNode));
  const std::string records = folder_ + "/jobs/" + command.job() + "/records";
  // At most 64 KiB are in transit, the rest waits on the disk, and the command ends.
  Await(command.job(), [](const ReceivedJob& received) { return received.out.size() > 30'000; });
  ASSERT_TRUE(WaitUntil([&] {
    return std::filesystem::exists(records) && std::filesystem::file_size(records) > 1'000'000;
  }));
  runner_->Stop(absl::Minutes(1));
  EXPECT_LT(std::filesystem::file_size(records), (1 << 20) + 100'000);
  {
    MutexLock lock(mutex_);
    EXPECT_LE(received_[command.job()].out.size(), 64 * 1024);
  }
  acks_ = true;
  runner_->Rewind();
  const ReceivedJob received = AwaitFinal(command.job());
  EXPECT_EQ(received.out.size(), 1 << 20);
  EXPECT_EQ(received.final->stdout_bytes(), 30'000'000);
}

TEST_F(JobRunnerTest, OutputOfAllJobsStaysWithinTheQuota) {
  End();
  max_spool_ = 300 * 1024;
  Begin();
  acks_ = false;
  const v1::Command first = TestCommands::Exec({"/usr/bin/head", "-c", "250000", "/dev/zero"});
  const v1::Command second = TestCommands::Exec({"/usr/bin/head", "-c", "250000", "/dev/zero"});
  for (const v1::Command* command : {&first, &second}) {
    runner_->Receive(commands_.ForNode(*command, kNode));
  }
  for (const v1::Command* command : {&first, &second}) {
    Await(command->job(), [](const ReceivedJob& received) { return received.started > 0; });
  }
  runner_->Stop(absl::Minutes(1));
  acks_ = true;
  runner_->Rewind();
  const ReceivedJob a = AwaitFinal(first.job());
  const ReceivedJob b = AwaitFinal(second.job());
  EXPECT_GT(a.cut + b.cut, 0);
  EXPECT_LE(a.out.size() + b.out.size(), 300 * 1024);
  EXPECT_EQ(a.out.size() + b.out.size() + static_cast<size_t>(a.cut + b.cut), 500'000);
}

TEST_F(JobRunnerTest, DiscardedOutputIsOnlyCounted) {
  v1::Command command = TestCommands::Exec({"/bin/echo", "hello"});
  command.set_discard_output(true);
  const ReceivedJob received = Run(command);
  EXPECT_EQ(received.out, "");
  EXPECT_EQ(received.cuts, 0);
  EXPECT_EQ(received.final->stdout_bytes(), 6);
}

TEST_F(JobRunnerTest, CommandPastItsTimeLimitIsEndedWithItsGroup) {
  v1::Command command = TestCommands::Exec({"/bin/sh", "-c", "sleep 1000 & echo $!; wait"});
  command.mutable_time_limit()->set_seconds(1);
  const ReceivedJob received = Run(command);
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_TIMED_OUT);
  EXPECT_EQ(received.final->signal(), SIGTERM);
  EXPECT_TRUE(WaitUntil([&] { return HasEnded(std::atoi(received.out.c_str())); }));
}

TEST_F(JobRunnerTest, SmallestOfTheThreeTimeLimitsApplies) {
  SetPolicy("commands: [{argv: ['**'], time_limit: 1s}]");
  EXPECT_EQ(Shell("exec sleep 1000").final->outcome(), v1::JOB_OUTCOME_TIMED_OUT);
  SetPolicy(kAnything);
  v1::JobCommand sent = commands_.ForNode(TestCommands::Exec({"/bin/sleep", "1000"}), kNode);
  sent.mutable_end_within()->set_nanos(100'000'000);
  runner_->Receive(sent);
  EXPECT_EQ(AwaitFinal(sent.job()).final->outcome(), v1::JOB_OUTCOME_TIMED_OUT);
}

TEST_F(JobRunnerTest, CancelEndsAGroupThatIgnoresSigterm) {
  const v1::Command command =
      TestCommands::Exec({"/bin/sh", "-c", "trap '' TERM; sleep 1000 & echo $!; wait; sleep 1000"});
  runner_->Receive(commands_.ForNode(command, kNode));
  const ReceivedJob begun =
      Await(command.job(), [](const ReceivedJob& t) { return !t.out.empty(); });
  v1::JobCancel cancel;
  cancel.set_job(command.job());
  cancel.add_nodes("n2");
  runner_->Cancel(cancel);  // not for us
  EXPECT_FALSE(HasEnded(std::atoi(begun.out.c_str())));
  cancel.add_nodes(kNode);
  runner_->Cancel(cancel);
  const ReceivedJob received = AwaitFinal(command.job());
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_CANCELLED);
  EXPECT_EQ(received.final->signal(), SIGKILL);
  EXPECT_TRUE(WaitUntil([&] { return HasEnded(std::atoi(begun.out.c_str())); }));
}

TEST_F(JobRunnerTest, CommandThatArrivesAfterItsCancelDoesNotRun) {
  const std::string marks = folder_ + "/marks";
  const v1::JobCommand sent =
      commands_.ForNode(TestCommands::Exec({"/bin/sh", "-c", "echo x >> " + marks}), kNode);
  v1::JobCancel cancel;
  cancel.set_job(sent.job());
  runner_->Cancel(cancel);
  EXPECT_EQ(AwaitFinal(sent.job()).final->outcome(), v1::JOB_OUTCOME_CANCELLED);
  runner_->Receive(sent);
  // One that follows has run.
  EXPECT_EQ(Shell("exit 0").final->exit_code(), 0);
  EXPECT_FALSE(std::filesystem::exists(marks));
}

TEST_F(JobRunnerTest, CommandWithoutTimeLeftDoesNotRun) {
  v1::JobCommand sent = commands_.ForNode(TestCommands::Exec({"/bin/true"}), kNode);
  sent.mutable_begin_within()->set_seconds(0);
  ExpectRefused(sent, "COMMAND_EXPIRED", v1::JOB_OUTCOME_EXPIRED);
}

TEST_F(JobRunnerTest, CommandsPastTheLimitWaitOrExpire) {
  End();
  max_parallel_ = 1;
  Begin();
  const v1::Command first = TestCommands::Exec({"/bin/sh", "-c", "echo on; exec sleep 1000"});
  runner_->Receive(commands_.ForNode(first, kNode));
  Await(first.job(), [](const ReceivedJob& t) { return !t.out.empty(); });
  v1::JobCommand late = commands_.ForNode(TestCommands::Exec({"/bin/true"}), kNode);
  late.mutable_begin_within()->set_seconds(0);
  late.mutable_begin_within()->set_nanos(50'000'000);
  const v1::JobCommand cancelled = commands_.ForNode(TestCommands::Exec({"/bin/true"}), kNode);
  const v1::JobCommand next = commands_.ForNode(TestCommands::Exec({"/bin/true"}), kNode);
  for (const v1::JobCommand& sent : {late, cancelled, next}) runner_->Receive(sent);
  EXPECT_EQ(AwaitFinal(late.job()).final->outcome(), v1::JOB_OUTCOME_EXPIRED);
  v1::JobCancel cancel;
  cancel.set_job(cancelled.job());
  runner_->Cancel(cancel);
  EXPECT_EQ(AwaitFinal(cancelled.job()).final->outcome(), v1::JOB_OUTCOME_CANCELLED);
  cancel.set_job(first.job());
  runner_->Cancel(cancel);
  EXPECT_EQ(AwaitFinal(next.job()).final->outcome(), v1::JOB_OUTCOME_EXITED);
}

TEST_F(JobRunnerTest, CommandThatCannotStartFailsWithTheReason) {
  ReceivedJob received = Run(TestCommands::Exec({"/no/such/program"}));
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_FAILED);
  EXPECT_EQ(received.final->reason(), "COMMAND_NOT_STARTED");
  EXPECT_NE(received.final->detail().find("/no/such/program"), std::string::npos);
  EXPECT_EQ(received.started, 0);
  SetPolicy("commands: [{argv: ['**'], user: no-such-user}]");
  received = Run(TestCommands::Exec({"/bin/true"}));
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_FAILED);
  EXPECT_NE(received.final->detail().find("no-such-user"), std::string::npos);
}

TEST_F(JobRunnerTest, StopEndsRunningCommandAndRecordsIt) {
  const v1::Command command = TestCommands::Exec({"/bin/sh", "-c", "echo on; exec sleep 1000"});
  runner_->Receive(commands_.ForNode(command, kNode));
  Await(command.job(), [](const ReceivedJob& t) { return !t.out.empty(); });
  runner_->Stop(absl::Milliseconds(1));
  const ReceivedJob received = AwaitFinal(command.job());
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_LOST);
  EXPECT_EQ(received.final->reason(), "AGENT_STOPPED");
}

TEST_F(JobRunnerTest, CommandOfAKilledAgentIsEndedAndLostAfterTheRestart) {
  End();
  const v1::Command command =
      TestCommands::Exec({"/bin/sh", "-c",
                          "sleep 1000 & echo $! > " + folder_ + "/pid.part; mv " + folder_ +
                              "/pid.part " + folder_ + "/pid; wait"});
  const v1::JobCommand sent = commands_.ForNode(command, kNode);
  std::ofstream(folder_ + "/sent") << sent.SerializeAsString();
  std::ofstream(folder_ + "/ca.pem") << commands_.authority().certificate().ToPem();
  auto agent = Subprocess::Start({.argv = {"/proc/self/exe", "--gtest_filter=KilledAgent.*"},
                                  .environment = {absl::StrCat(kLifeVariable, "=", folder_)}});
  ASSERT_TRUE(agent.ok()) << agent.status();
  ASSERT_TRUE(WaitUntil([&] { return std::filesystem::exists(folder_ + "/pid"); }));
  pid_t helper = 0;
  std::ifstream(folder_ + "/pid") >> helper;
  (*agent)->Signal(SIGKILL);
  (*agent)->Wait(absl::Minutes(1));
  EXPECT_FALSE(HasEnded(helper));
  Begin();
  EXPECT_TRUE(WaitUntil([&] { return HasEnded(helper); }));
  const ReceivedJob received = AwaitFinal(command.job());
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_LOST);
  EXPECT_EQ(received.final->reason(), "AGENT_DIED");
  runner_->Receive(sent);
  EXPECT_EQ(AwaitFinal(command.job()).started, 1);
}

TEST_F(JobRunnerTest, DamagedJobDoesNotStopTheAgentAndIsNotRunAgain) {
  const std::string marks = folder_ + "/marks";
  const v1::JobCommand sent =
      commands_.ForNode(TestCommands::Exec({"/bin/sh", "-c", "echo x >> " + marks}), kNode);
  runner_->Receive(sent);
  AwaitFinal(sent.job());
  End();
  std::fstream(folder_ + "/jobs/" + sent.job() + "/job", std::ios::in | std::ios::out)
      .seekp(100)
      .put('#');
  Begin();
  {
    MutexLock lock(mutex_);
    reached_.erase(sent.job());
    received_.erase(sent.job());
  }
  ExpectRefused(sent, "REPLAYED");
  EXPECT_EQ(Shell("cat " + marks).out, "x\n");
}

TEST_F(JobRunnerTest, JobWithDamagedRecordsIsLost) {
  acks_ = false;
  const std::string go_on = folder_ + "/go-on";
  const v1::JobCommand sent = commands_.ForNode(
      TestCommands::Exec({"/bin/sh", "-c", "until test -e " + go_on + "; do sleep 0.01; done"}),
      kNode);
  runner_->Receive(sent);
  Await(sent.job(), [](const ReceivedJob& received) { return received.started > 0; });
  std::ofstream(go_on) << "";
  ASSERT_EQ(AwaitFinal(sent.job()).final->outcome(), v1::JOB_OUTCOME_EXITED);
  End();
  // In the first record; the next proves that it was synced.
  std::fstream(folder_ + "/jobs/" + sent.job() + "/records", std::ios::in | std::ios::out)
      .seekp(45)
      .put('#');
  {
    MutexLock lock(mutex_);
    reached_.erase(sent.job());
    received_.erase(sent.job());
  }
  acks_ = true;
  Begin();
  const ReceivedJob received = AwaitFinal(sent.job());
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_LOST);
  EXPECT_EQ(received.final->reason(), "RECORDS_DAMAGED");
}

TEST_F(JobRunnerTest, OtherProcessWithTheIdOfAnOldOneIsNotKilled) {
  auto stranger = Subprocess::Start({.argv = {"/bin/sleep", "1000"}});
  ASSERT_TRUE(stranger.ok());
  ProcessMark mark = ProcessMark::Of((*stranger)->pid()).value();
  --mark.started;
  EXPECT_EQ(EndGroup(mark, "0123456789abcdef0123456789abcdef"), 0);
  EXPECT_EQ((*stranger)->Wait(absl::ZeroDuration()), std::nullopt);
  ++mark.started;
  EXPECT_EQ(EndGroup(mark, "0123456789abcdef0123456789abcdef"), 1);
  EXPECT_EQ((*stranger)->Wait(absl::Minutes(1))->signal, SIGKILL);
}

}  // namespace
}  // namespace muster
