#include "services/agent/jobs/job_runner.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "services/agent/jobs/testing/job_runner_fixture.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

class JobRunnerTest : public JobRunnerFixture {};

TEST_F(JobRunnerTest, CommandRunsAndItsRecordsAreReported) {
  const JobAtRoot received = Shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(received.started, 1);
  EXPECT_EQ(received.out, "out\n");
  EXPECT_EQ(received.err, "err\n");
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(received.final->exit_code(), 3);
}

TEST_F(JobRunnerTest, ExpiredCommandIsReportedAsExpired) {
  v1::Command past = TestCommands::Exec({"/bin/true"});
  past.mutable_not_before()->set_seconds(absl::ToUnixSeconds(absl::Now() - absl::Hours(2)));
  past.mutable_not_after()->set_seconds(absl::ToUnixSeconds(absl::Now() - absl::Hours(1)));
  ExpectRefused(commands_.ForNode(past, kNode), "COMMAND_EXPIRED", v1::JOB_OUTCOME_EXPIRED);
}

TEST_F(JobRunnerTest, UnackedOutputIsBoundedInMemoryAndOnDisk) {
  acks_ = false;
  SetPolicy("commands: [{argv: ['**'], max_output: 1MiB}]");
  const v1::Command command = TestCommands::Exec({"/bin/sh", "-c", "yes | head -c 30000000"});
  runner_->Receive(commands_.ForNode(command, kNode));
  const std::string records = folder_ + "/jobs/" + command.job() + "/records";
  // At most 64 KiB are in transit before the first ack, the rest waits on the disk, and the command
  // ends.
  AwaitRecords(command.job(),
               [](const JobAtRoot& received) { return received.out.size() > 30'000; });
  ASSERT_TRUE(testing::Await([&] {
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
  const JobAtRoot received = AwaitFinal(command.job());
  EXPECT_EQ(received.out.size(), 1 << 20);
  EXPECT_EQ(received.final->stdout_bytes(), 30'000'000);
}

TEST_F(JobRunnerTest, CancelEndsTheRunningCommandOfThisNode) {
  const v1::Command command = TestCommands::Exec({"/bin/sh", "-c", "echo $$; exec sleep 1000"});
  runner_->Receive(commands_.ForNode(command, kNode));
  const JobAtRoot begun =
      AwaitRecords(command.job(), [](const JobAtRoot& t) { return !t.out.empty(); });
  v1::JobCancel cancel;
  cancel.set_job(command.job());
  cancel.add_nodes("n2");
  runner_->Cancel(cancel);
  EXPECT_FALSE(HasEnded(std::atoi(begun.out.c_str())));
  cancel.add_nodes(kNode);
  runner_->Cancel(cancel);
  EXPECT_EQ(AwaitFinal(command.job()).final->outcome(), v1::JOB_OUTCOME_CANCELLED);
}

TEST_F(JobRunnerTest, CancelDoesNotReplaceAnUnackedRefusal) {
  v1::Command command = TestCommands::Exec({"/bin/true"});
  TestCommands::SetTargets({"n2"}, &command);
  const v1::JobCommand sent = commands_.ForNode(command, kNode);
  acks_ = false;
  ExpectRefused(sent, "TARGET_REFUSED");
  v1::JobCancel cancel;
  cancel.set_job(sent.job());
  runner_->Cancel(cancel);
  Forget(sent.job());
  runner_->Rewind();
  EXPECT_EQ(AwaitFinal(sent.job()).final->reason(), "TARGET_REFUSED");
}

TEST_F(JobRunnerTest, FinalRecordIsSignedLaterIfTheKeyCannotBeRead) {
  End();
  std::atomic<int> failures = 2;
  sign_ = [&](const v1::JobRecord&,
              const RecordsDigest&) -> absl::StatusOr<v1::JobRecord::RecordsSignature> {
    if (failures-- > 0) return absl::ResourceExhaustedError("too many open files");
    return v1::JobRecord::RecordsSignature();
  };
  Begin();
  EXPECT_TRUE(Shell("exit 0").final->has_signature());
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
  AwaitRecords(first.job(), [](const JobAtRoot& t) { return !t.out.empty(); });
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

TEST_F(JobRunnerTest, StopEndsRunningCommandAndRecordsIt) {
  const v1::Command command = TestCommands::Exec({"/bin/sh", "-c", "echo on; exec sleep 1000"});
  runner_->Receive(commands_.ForNode(command, kNode));
  AwaitRecords(command.job(), [](const JobAtRoot& t) { return !t.out.empty(); });
  runner_->Stop(absl::Milliseconds(1));
  const JobAtRoot received = AwaitFinal(command.job());
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_LOST);
  EXPECT_EQ(received.final->reason(), "AGENT_STOPPED");
}

}  // namespace
}  // namespace muster
