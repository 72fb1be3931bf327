// The end of a container after a stop whose agent was killed.
#include <signal.h>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/agent/jobs/testing/job_container_fixture.h"

namespace muster {
namespace {

constexpr char kEndsOnTerm[] = "trap 'exit 0' TERM; echo ready; sleep 1000 & wait";

// The part of an agent that is killed: see KillAgentOf.
TEST(KilledAgent, RunsAContainer) { RunKilledAgent(); }

class JobStopTest : public JobContainerFixture {
 protected:
  // Ends the container as an agent does that is killed immediately afterwards.
  void StopAndRecover(JobStop why, absl::Time time) {
    KillAgentOf(kEndsOnTerm);
    Recover();
    ASSERT_TRUE(job_->NoteStop({why, time, "too much"}).ok());
    ASSERT_TRUE(engine_.SignalContainer(ContainerNameOf("n1", kJob), SIGTERM).ok());
    AwaitEnded();
    job_.reset();
    Recover();
  }
};

TEST_F(JobStopTest, ContainerThatWasTimedOutHasNotSucceeded) {
  StopAndRecover(JobStop::kTimedOut, absl::Now());
  const Records all = Run(job_->container()->plan);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_TIMED_OUT);
}

TEST_F(JobStopTest, ContainerThatWasCancelledHasNotSucceeded) {
  StopAndRecover(JobStop::kCancelled, absl::Now());
  EXPECT_EQ(Run(job_->container()->plan).final.outcome(), v1::JOB_OUTCOME_CANCELLED);
}

TEST_F(JobStopTest, ContainerWithTooLargeAStateHasNotSucceeded) {
  StopAndRecover(JobStop::kStateTooLarge, absl::Now());
  const Records all = Run(job_->container()->plan);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_FAILED);
  EXPECT_THAT(all.final.detail(), ::testing::HasSubstr("too much"));
}

TEST_F(JobStopTest, ContainerThatEndedBeforeTheSignalHasEndedByItself) {
  StopAndRecover(JobStop::kCancelled, absl::Now() + absl::Hours(1));
  EXPECT_EQ(Run(job_->container()->plan).final.outcome(), v1::JOB_OUTCOME_EXITED);
}

TEST_F(JobStopTest, CauseIsStoredBeforeTheContainerEnds) {
  JobPlan plan = PlanOf(docker_->image(), kEndsOnTerm);
  Start(plan);
  AwaitRunning();
  process_->Stop(JobStop::kCancelled);
  EXPECT_EQ(Finish().final.outcome(), v1::JOB_OUTCOME_CANCELLED);
  job_.reset();
  const auto stored = NodeJobFolder::Open(PosixFileOps(), folder_, kJob, "n1");
  ASSERT_TRUE(stored.ok()) << stored.status();
  ASSERT_TRUE((*stored)->stop().has_value());
  EXPECT_EQ((*stored)->stop()->why, JobStop::kCancelled);
}

}  // namespace
}  // namespace muster
