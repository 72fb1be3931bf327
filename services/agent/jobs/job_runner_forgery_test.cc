// The outcome that a node reports is true, whatever a relay on the route sends.
#include <filesystem>
#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "services/agent/jobs/testing/job_runner_fixture.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

class JobRunnerForgeryTest : public JobRunnerFixture {
 protected:
  // Returns a command that leaves a mark.
  v1::JobCommand Genuine(const std::vector<std::string>& targets = {}) {
    v1::Command command = TestCommands::Exec({"/bin/sh", "-c", "echo x >> " + marks_});
    if (!targets.empty()) TestCommands::SetTargets(targets, &command);
    return commands_.ForNode(command, kNode);
  }

  // One that follows has run.
  void ExpectNeverRuns(const v1::JobCommand& genuine) {
    for (int restarts = 0; restarts < 2; ++restarts) {
      runner_->Receive(genuine);
      EXPECT_EQ(Shell("exit 0").final->exit_code(), 0);
      EXPECT_FALSE(std::filesystem::exists(marks_));
      EXPECT_EQ(AwaitFinal(genuine.job()).started, 0);
      End();
      Begin();
    }
  }

  void AwaitDone(const std::string& job) {
    ASSERT_TRUE(testing::Await(
        [&] { return !std::filesystem::exists(folder_ + "/jobs/" + job + "/records"); }));
  }

  const std::string marks_ = folder_ + "/marks";
};

// The signed refusal would say that a command which runs later did not run.
TEST_F(JobRunnerForgeryTest, CommandDoesNotRunAfterTheRefusalOfAForgedCopy) {
  const std::function<void(v1::JobCommand&)> changes[] = {
      [](v1::JobCommand& copy) { copy.mutable_command()->set_signature(std::string(64, '\0')); },
      [](v1::JobCommand& copy) { copy.mutable_command()->mutable_command()->append("x"); },
      [](v1::JobCommand& copy) { copy.mutable_command()->clear_certificate_chain_pem(); },
      [](v1::JobCommand& copy) { copy.mutable_targets(0)->add_proof(std::string(32, 'x')); },
      [](v1::JobCommand& copy) { copy.mutable_targets(0)->set_index(7); },
      [](v1::JobCommand& copy) { copy.mutable_targets(0)->set_node("n2"); },
      [this](v1::JobCommand& copy) { *copy.mutable_command() = Genuine().command(); },
  };
  for (size_t i = 0; i < std::size(changes); ++i) {
    SCOPED_TRACE(i);
    const v1::JobCommand genuine = Genuine({kNode});
    v1::JobCommand copy = genuine;
    changes[i](copy);
    runner_->Receive(copy);
    EXPECT_EQ(AwaitFinal(genuine.job()).final->outcome(), v1::JOB_OUTCOME_REFUSED);
    ASSERT_TRUE(runner_->AwaitAcked(absl::Minutes(1)));
    ExpectNeverRuns(genuine);
  }
}

TEST_F(JobRunnerForgeryTest, RefusalKeepsItsReasonAfterARestart) {
  v1::JobCommand copy = Genuine();
  copy.mutable_command()->clear_signature();
  ExpectRefused(copy, "COMMAND_REFUSED");
  ASSERT_TRUE(runner_->AwaitAcked(absl::Minutes(1)));
  End();
  Begin();
  Forget(copy.job());
  ExpectRefused(copy, "COMMAND_REFUSED");
}

TEST_F(JobRunnerForgeryTest, NothingIsReportedBeyondTheLimitSoThatTheCommandMayRun) {
  End();
  max_cancelled_ = 2;
  Begin();
  const v1::JobCommand first = Genuine();
  v1::JobCommand copy = first;
  copy.mutable_command()->clear_signature();
  ExpectRefused(copy, "COMMAND_REFUSED");
  copy.set_job(Genuine().job());
  ExpectRefused(copy, "COMMAND_REFUSED");
  const v1::Command third = TestCommands::Exec({"/bin/true"});
  v1::JobCancel cancel;
  cancel.set_job(third.job());
  copy.set_job(third.job());
  runner_->Cancel(cancel);
  runner_->Receive(copy);
  const JobAtRoot received = Run(third);
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(received.started, 1);
  ExpectNeverRuns(first);
}

// A relay acks the records itself, and withholds them.
TEST_F(JobRunnerForgeryTest, JobThatHasRunIsNotReportedAsRefusedOrCancelled) {
  const v1::JobCommand genuine = Genuine();
  runner_->Receive(genuine);
  EXPECT_EQ(AwaitFinal(genuine.job()).started, 1);
  AwaitDone(genuine.job());
  v1::JobCommand copy = genuine;
  copy.mutable_command()->clear_signature();
  v1::JobCancel cancel;
  cancel.set_job(genuine.job());
  for (int restarts = 0; restarts < 2; ++restarts) {
    Forget(genuine.job());
    runner_->Cancel(cancel);
    ExpectRefused(copy, "REPLAYED", v1::JOB_OUTCOME_LOST);
    ASSERT_TRUE(runner_->AwaitAcked(absl::Minutes(1)));
    End();
    Begin();
  }
}

TEST_F(JobRunnerForgeryTest, ReplayOfARefusedCommandIsRefused) {
  SetPolicy("");
  const v1::JobCommand genuine = Genuine();
  ExpectRefused(genuine, "POLICY_REFUSED");
  AwaitDone(genuine.job());
  for (int restarts = 0; restarts < 2; ++restarts) {
    Forget(genuine.job());
    ExpectRefused(genuine, "REPLAYED");
    ASSERT_TRUE(runner_->AwaitAcked(absl::Minutes(1)));
    End();
    Begin();
  }
}

}  // namespace
}  // namespace muster
