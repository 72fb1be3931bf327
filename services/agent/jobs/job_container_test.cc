// A real Docker daemon; the test reads the outbox as the root relay does.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/agent/jobs/testing/job_container_fixture.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// The part of an agent that is killed: see ContainerOfAKilledAgentIsFollowedToItsEnd.
TEST(KilledAgent, RunsAContainer) { RunKilledAgent(); }

// Returns whether the arguments of a process contain this text.
bool AnyProcessNames(std::string_view text) {
  std::error_code gone;
  for (const auto& process : std::filesystem::directory_iterator("/proc", gone)) {
    std::ifstream file(process.path() / "cmdline");
    const std::string line{std::istreambuf_iterator<char>(file), {}};
    if (line.find(text) != line.npos) return true;
  }
  return false;
}

class JobContainerTest : public JobContainerFixture {
 protected:
  // Creates the job as an agent that is killed before it has stored any output.
  JobPlan NotePlan() {
    JobPlan plan = PlanOf(docker_->image(), "");
    job_ = NodeJobFolder::Create(PosixFileOps(), folder_, kJob, "n1", {}).value();
    EXPECT_TRUE(job_->NoteContainer({BootId(), absl::Now(), SinceBoot(), plan}).ok());
    return plan;
  }

  // Runs the container of the job to its end, with a log of 1 MiB.
  void RunWithASmallLog(const std::string& script) {
    ContainerSpec spec;
    spec.name = ContainerNameOf("n1", kJob);
    spec.image = docker_->image();
    spec.command = {"/bin/sh", "-c", script};
    spec.log_size = int64_t{1} << 20;
    ASSERT_TRUE(engine_.CreateContainer(spec).ok());
    ASSERT_TRUE(engine_.StartContainer(spec.name).ok());
    AwaitEnded();
  }
};

TEST_F(JobContainerTest, OutputAndExitCodeAreRecorded) {
  // A volume of the image would be a folder on the disk of the node, without a limit.
  const Records all = Shell(
      "echo out; echo err >&2; echo $MUSTER_JOB; id -u; grep -q '^tmpfs /data tmpfs' /proc/mounts "
      "|| "
      "exit 5; echo x > /data/file && exit 3");
  EXPECT_EQ(all.started, 1);
  EXPECT_EQ(all.out, absl::StrCat("out\n", kJob, "\n65532\n"));
  EXPECT_EQ(all.err, "err\n");
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(all.final.exit_code(), 3);
  EXPECT_EQ(all.final.reason(), "");
}

// Docker notes the start of such a container after its end.
TEST_F(JobContainerTest, ShortCommandsHaveADuration) {
  for (int i = 0; i < 5; ++i) {
    const Records all = Run(PlanOf(docker_->image(), "exit 0"));
    EXPECT_EQ(all.finals, 1);
    EXPECT_GE(all.final.duration().seconds(), 0);
    EXPECT_GE(all.final.duration().nanos(), 0);
    job_.reset();
    std::filesystem::remove_all(folder_ + "/" + kJob);
  }
}

TEST_F(JobContainerTest, EndForLackOfMemoryIsReported) {
  JobPlan plan = PlanOf(docker_->image(), "x=y; while :; do x=$x$x; done");
  plan.container.memory = int64_t{16} << 20;
  const Records all = Run(plan);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(all.final.exit_code(), 137);
  EXPECT_EQ(all.final.reason(), "OUT_OF_MEMORY");
  EXPECT_THAT(all.final.detail(), HasSubstr("16 MiB"));
}

TEST_F(JobContainerTest, TimeLimitEndsACommandThatIgnoresSigterm) {
  JobPlan plan = PlanOf(docker_->image(), "trap '' TERM; while :; do sleep 1; done");
  plan.time_limit = absl::Seconds(1);
  const Records all = Run(plan);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_TIMED_OUT);
}

TEST_F(JobContainerTest, CancelEndsTheCommand) {
  Start(PlanOf(docker_->image(), "echo begun; sleep 1000"));
  AwaitRunning();
  process_->Stop(JobStop::kCancelled);
  const Records all = Finish();
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_CANCELLED);
}

TEST_F(JobContainerTest, MissingImageAndDaemonAreReasons) {
  Records all = Run(PlanOf("sha256:" + std::string(64, '0'), "true"));
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_FAILED);
  EXPECT_EQ(all.final.reason(), "IMAGE_NOT_FOUND");
  EXPECT_EQ(all.started, 0);
  DockerEngine none("/tmp/none.sock");
  std::filesystem::remove_all(folder_ + "/" + kJob);
  job_ = NodeJobFolder::Create(PosixFileOps(), folder_, kJob, "n1", {}).value();
  JobProcess({"/agent", "n1", quota_, none, contents_}, *job_, kJob,
             PlanOf(docker_->image(), "true"), [] {})
      .Run();
  all = ReadRecords(*job_);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_FAILED);
  EXPECT_EQ(all.final.reason(), "DOCKER_UNREACHABLE");
}

TEST_F(JobContainerTest, CommandThatArrivesWhileDockerIsRestartedRuns) {
  ASSERT_TRUE(engine_.GetInfo().ok());
  docker_->Kill();
  Start(PlanOf(docker_->image(), "echo ready"));
  docker_->Start();  // takes longer than the first attempt
  const Records all = Finish();
  EXPECT_EQ(all.out, "ready\n");
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_EXITED);
}

// The container belongs to another agent with a copy of this node's identity, at the same daemon.
TEST_F(JobContainerTest, ContainerOfAnotherAgentIsLeftAlone) {
  ContainerSpec spec;
  spec.name = ContainerNameOf("n1", kJob);
  spec.image = docker_->image();
  ASSERT_TRUE(engine_.CreateContainer(spec).ok());
  Start(PlanOf(docker_->image(), "true"));
  thread_.join();
  const Records all = ReadRecords(*job_);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_FAILED);
  EXPECT_EQ(all.final.reason(), "CONTAINER_EXISTS");
  EXPECT_TRUE(engine_.InspectContainer(spec.name).ok());
}

TEST_F(JobContainerTest, RegistryThatDoesNotAnswerIsAReason) {
  const Records all = Run(PlanOf("127.0.0.1:1/none@sha256:" + std::string(64, '0'), "true"));
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_FAILED);
  EXPECT_EQ(all.final.reason(), "IMAGE_PULL_FAILED");
  EXPECT_THAT(all.final.detail(), HasSubstr("127.0.0.1:1"));
}

TEST_F(JobContainerTest, ContainerOfAKilledAgentIsFollowedToItsEnd) {
  KillAgentOf(
      "echo ready; echo E1 >&2; sleep 0.5; for i in 1 2 3; do echo $i; sleep 0.3; done; exit 4");
  Recover();
  EXPECT_EQ(job_->log()->has_final(), false);
  const Records all = Run(job_->container()->plan);
  EXPECT_EQ(all.started, 1);
  EXPECT_EQ(all.out, "ready\n1\n2\n3\n");
  EXPECT_EQ(all.err, "E1\n");
  EXPECT_EQ(all.final.exit_code(), 4);
  EXPECT_EQ(all.final.stdout_bytes(), 12);
}

// The clock was wrong when the machine started.
TEST_F(JobContainerTest, JumpOfTheClockDoesNotEndTheCommand) {
  KillAgentOf("echo ready; sleep 2; exit 4");
  Recover();
  ContainerMark mark = *job_->container();
  mark.start -= absl::Hours(24);
  ASSERT_TRUE(job_->NoteContainer(mark).ok());
  const Records all = Run(mark.plan);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_EXITED) << all.final.detail();
  EXPECT_EQ(all.final.exit_code(), 4);
}

TEST_F(JobContainerTest, TimeBeforeARestartOfTheAgentCounts) {
  KillAgentOf("echo ready; sleep 1000");
  Recover();
  ContainerMark mark = *job_->container();
  mark.since_boot -= mark.plan.time_limit;
  ASSERT_TRUE(job_->NoteContainer(mark).ok());
  EXPECT_EQ(Run(mark.plan).final.outcome(), v1::JOB_OUTCOME_TIMED_OUT);
}

TEST_F(JobContainerTest, StartInTheFutureDoesNotPreventTheOutcome) {
  KillAgentOf("echo ready; sleep 1000");
  ASSERT_TRUE(engine_.RemoveContainer(ContainerNameOf("n1", kJob)).ok());
  Recover();
  ContainerMark mark = *job_->container();
  mark.boot = "another";
  mark.start += absl::Hours(24);
  ASSERT_TRUE(job_->NoteContainer(mark).ok());
  const Records all = Run(mark.plan);
  EXPECT_EQ(all.finals, 1);
  EXPECT_EQ(all.final.reason(), "CONTAINER_NOT_FOUND");
  EXPECT_EQ(all.final.duration().seconds(), 0);
}

TEST_F(JobContainerTest, ContainerThatEndedWithoutItsAgentIsReported) {
  KillAgentOf("echo ready; sleep 0.3; head -c 100000 /dev/zero | tr '\\0' x; exit 9");
  ASSERT_TRUE(testing::Await(
      [&] { return engine_.InspectContainer(ContainerNameOf("n1", kJob))->ended(); }));
  Recover();
  const Records all = Run(job_->container()->plan);
  EXPECT_EQ(all.out, "ready\n" + std::string(100'000, 'x'));
  EXPECT_EQ(all.final.exit_code(), 9);
  EXPECT_EQ(all.final.reason(), "");
}

TEST_F(JobContainerTest, ContainerThatSomebodyRemovedIsLost) {
  KillAgentOf("echo ready; sleep 1000");
  ASSERT_TRUE(engine_.RemoveContainer(ContainerNameOf("n1", kJob)).ok());
  Recover();
  const Records all = Run(job_->container()->plan);
  EXPECT_EQ(all.out, "ready\n");
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_LOST);
  EXPECT_EQ(all.final.reason(), "CONTAINER_NOT_FOUND");
}

TEST_F(JobContainerTest, KillOfTheDaemonLosesNoOutput) {
  Start(PlanOf(docker_->image(), "for i in $(seq 60); do echo $i; sleep 0.05; done; exit 6"));
  AwaitRunning();
  docker_->Kill();
  docker_->Start();
  const Records all = Finish();
  std::string want;
  for (int i = 1; i <= 60; ++i) absl::StrAppend(&want, i, "\n");
  EXPECT_EQ(all.out, want);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(all.final.exit_code(), 6);
}

// The daemon stores whole lines.
TEST_F(JobContainerTest, PartOfALineThatAKilledDaemonHadIsNotLost) {
  Start(PlanOf(docker_->image(),
               "trap go=1 USR1; printf begin; until [ $go ]; do sleep 0.1; done; go=;"
               "echo middle; until [ $go ]; do sleep 0.1; done; echo end; sleep 3"));
  for (const int64_t bytes : {5, 12}) {
    ASSERT_TRUE(testing::Await([&] { return job_->log()->content().out.bytes == bytes; }));
    docker_->Kill();
    docker_->Start();
    ASSERT_TRUE(engine_.SignalContainer(ContainerNameOf("n1", kJob), SIGUSR1).ok());
  }
  const Records all = Finish();
  EXPECT_EQ(all.out, "beginmiddle\nend\n");
  EXPECT_EQ(all.final.stdout_bytes(), 16);
  EXPECT_EQ(all.final.reason(), "") << all.final.detail();
}

// Nothing has copied what the container wrote last.
TEST_F(JobContainerTest, EndWithoutTheDaemonIsReported) {
  Start(PlanOf(docker_->image(), "echo ready; sleep 2; echo last 7411; exit 6"));
  AwaitRunning();
  docker_->Kill();
  ASSERT_TRUE(testing::Await([] { return !AnyProcessNames("last 7411"); }));
  docker_->Start();
  const Records all = Finish();
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(all.final.exit_code(), 6);
  EXPECT_EQ(all.final.reason(), "CONTAINER_OUTPUT_LOST") << all.out;
}

TEST_F(JobContainerTest, EndWithoutTheDaemonAndWithoutTheAgentIsReported) {
  KillAgentOf("echo ready; sleep 2; echo last 7412; exit 6");
  docker_->Kill();
  ASSERT_TRUE(testing::Await([] { return !AnyProcessNames("last 7412"); }));
  docker_->Start();
  Recover();
  const Records all = Run(job_->container()->plan);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(all.final.exit_code(), 6);
  EXPECT_EQ(all.final.reason(), "CONTAINER_OUTPUT_LOST") << all.out;
}

// Docker was killed during the start, and has only stored the creation.
TEST_F(JobContainerTest, ContainerThatDockerForgetsAfterItsOutputHasNotNeverRun) {
  NotePlan();
  v1::JobRecord output;
  output.mutable_output()->set_stream(v1::JOB_STREAM_STDOUT);
  output.mutable_output()->set_data("ready\n");
  ASSERT_TRUE(job_->log()->Append(output).ok());
  ContainerSpec spec;
  spec.name = ContainerNameOf("n1", kJob);
  spec.image = docker_->image();
  ASSERT_TRUE(engine_.CreateContainer(spec).ok());
  const Records all = Run(job_->container()->plan);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_LOST);
  EXPECT_EQ(all.final.reason(), "CONTAINER_STATE_LOST");
}

// The agent was down when it ended, and longer than its time limit.
TEST_F(JobContainerTest, ContainerThatEndedInTimeIsNotTimedOut) {
  KillAgentOf("echo ready; sleep 0.3; exit 0");
  const std::string name = ContainerNameOf("n1", kJob);
  ASSERT_TRUE(testing::Await([&] { return engine_.InspectContainer(name)->ended(); }));
  Recover();
  JobPlan plan = job_->container()->plan;
  plan.time_limit =
      *engine_.InspectContainer(name)->finished - job_->container()->start + absl::Milliseconds(1);
  ASSERT_TRUE(
      testing::Await([&] { return absl::Now() > job_->container()->start + plan.time_limit; }));
  const Records all = Run(plan);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_EXITED) << all.final.detail();
  EXPECT_EQ(all.final.exit_code(), 0);
}

// Docker does not receive the first signals.
TEST_F(JobContainerTest, CancelIsRepeatedWhenDockerReturns) {
  Start(PlanOf(docker_->image(), "trap '' TERM; while :; do sleep 1; done"));
  AwaitRunning();
  docker_->Kill();
  process_->Stop(JobStop::kCancelled);
  absl::SleepFor(absl::Seconds(6));  // until SIGTERM and the first SIGKILL have failed
  docker_->Start();
  const Records all = Finish();
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_CANCELLED);
}

TEST_F(JobContainerTest, AgentStopsWithoutDockerAndFollowsTheContainerLater) {
  Start(PlanOf(docker_->image(), "sleep 25; exit 4"));
  AwaitRunning();
  docker_->Kill();
  process_->Stop(JobStop::kAgentStops);
  thread_.join();
  EXPECT_FALSE(job_->log()->has_final());
  docker_->Start();
  job_.reset();
  Recover();
  const Records all = Run(job_->container()->plan);
  EXPECT_EQ(all.started, 1);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(all.final.exit_code(), 4);
}

// The log of Docker has other bytes than those that are stored, and as many.
TEST_F(JobContainerTest, OutputThatTheFullLogHasLostIsReported) {
  const JobPlan plan = NotePlan();
  v1::JobRecord stored;
  stored.mutable_output()->set_stream(v1::JOB_STREAM_STDOUT);
  stored.mutable_output()->set_data(std::string(32 << 10, 'a'));
  ASSERT_TRUE(job_->log()->Append(stored).ok());
  RunWithASmallLog("head -c 32768 /dev/zero | tr '\\0' a; head -c 3000000 /dev/zero | tr '\\0' b");
  const Records all = Run(plan);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(all.final.reason(), "CONTAINER_OUTPUT_LOST");
}

// The agent was killed before it stored any output: there is nothing to compare the log with.
TEST_F(JobContainerTest, FullLogIsReportedAlthoughNoOutputWasStored) {
  const JobPlan plan = NotePlan();
  RunWithASmallLog("echo first; head -c 3000000 /dev/zero | tr '\\0' b");
  const Records all = Run(plan);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(all.final.reason(), "CONTAINER_OUTPUT_LOST");
  EXPECT_EQ(all.out.find("first"), std::string::npos);
}

// The log of Docker lacks the line break of such a line.
TEST_F(JobContainerTest, OutputAfterALineOfManyPiecesIsWholeAfterAKillOfTheDaemon) {
  Start(PlanOf(docker_->image(),
               "head -c 32768 /dev/zero | tr '\\0' x; echo; sleep 4; echo hello; exit 0"));
  AwaitRunning();
  ASSERT_TRUE(testing::Await([&] { return job_->log()->content().out.bytes == 32'769; }));
  docker_->Kill();
  docker_->Start();
  const Records all = Finish();
  EXPECT_EQ(all.out, std::string(32'768, 'x') + "\nhello\n");
  EXPECT_EQ(all.final.reason(), "");
}

TEST_F(JobContainerTest, DamagedRecordsAreTheOutcome) {
  KillAgentOf("echo ready; sleep 1000");
  std::fstream(absl::StrCat(folder_, "/", kJob, "/records"), std::ios::in | std::ios::out)
      .seekp(45)
      .put('#');
  Recover();
  const Records all = ReadRecords(*job_);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_LOST);
  EXPECT_EQ(all.final.reason(), "RECORDS_DAMAGED");
}

TEST_F(JobContainerTest, OutputOverTheLimitIsCut) {
  JobPlan plan = PlanOf(docker_->image(), "head -c 300000 /dev/zero | tr '\\0' x");
  plan.max_output = 100'000;
  const Records all = Run(plan);
  EXPECT_EQ(all.out.size(), 100'000u);
  EXPECT_EQ(all.cut, 200'000);
  EXPECT_EQ(all.final.stdout_bytes(), 300'000);
}

}  // namespace
}  // namespace muster
