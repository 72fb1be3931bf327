// A real Docker daemon; the test reads the outbox as the root relay does.
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/agent/docker/testing/docker_fixture.h"
#include "services/agent/jobs/job_process.h"
#include "services/agent/jobs/job_recovery.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/subprocess.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr char kAgentVariable[] = "MUSTER_TEST_AGENT";
const std::string kJob(32, 'a');

// The records of a job.
struct Records {
  std::string out;
  std::string err;
  int64_t cut = 0;
  int started = 0;
  int finals = 0;
  v1::JobRecord::Final final;
};

Records Read(NodeJobFolder& folder) {
  Records all;
  for (folder.log()->Rewind();;) {
    v1::JobRecords next;
    EXPECT_TRUE(folder.log()->NextRecords(1 << 20, nullptr, &next).ok());
    if (next.records().empty()) return all;
    for (const v1::JobRecord& record : next.records()) {
      if (record.has_started()) ++all.started;
      if (record.has_output()) {
        (record.output().stream() == v1::JOB_STREAM_STDERR ? all.err : all.out) +=
            record.output().data();
      }
      if (record.has_cut()) all.cut += record.cut().bytes();
      if (record.has_final()) {
        ++all.finals;
        all.final = record.final();
      }
    }
    folder.log()->Ack(next.records().rbegin()->sequence());
  }
}

JobPlan PlanOf(const std::string& image, const std::string& script) {
  JobPlan plan;
  plan.argv = {"/bin/sh", "-c", script};
  plan.user = "65532:65532";
  plan.time_limit = absl::Minutes(1);
  plan.max_output = int64_t{16} << 20;
  plan.image = image;
  return plan;
}

// The part of an agent that is killed: see ContainerOfAKilledAgentIsFollowedToItsEnd.
TEST(KilledAgent, RunsAContainer) {
  const char* variable = std::getenv(kAgentVariable);
  if (variable == nullptr) GTEST_SKIP() << "runs as a child of another test";
  const std::vector<std::string> parts = absl::StrSplit(variable, absl::MaxSplits('|', 3));
  auto folder = NodeJobFolder::Create(PosixFileOps(), parts[0], kJob, "n1", {}).value();
  SpoolQuota quota(int64_t{1} << 30);
  DockerEngine docker(parts[1]);
  JobProcess({"/agent", "n1", quota, docker}, *folder, kJob, PlanOf(parts[2], parts[3]), [&] {
    folder->log()->Sync().IgnoreError();
  }).Run();
}

class JobContainerTest : public testing::DockerTest {
 protected:
  JobContainerTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~JobContainerTest() override {
    engine_.RemoveContainer(ContainerNameOf("n1", kJob)).IgnoreError();
  }

  void Start(const JobPlan& plan) {
    if (job_ == nullptr) {
      job_ = NodeJobFolder::Create(PosixFileOps(), folder_, kJob, "n1", {}).value();
    }
    process_ = std::make_unique<JobProcess>(JobHost{"/agent", "n1", quota_, engine_}, *job_, kJob,
                                            plan, [] {});
    thread_ = std::thread([this] { process_->Run(); });
  }

  Records Finish() {
    thread_.join();
    EXPECT_EQ(engine_.ListContainers(kContainerFolderLabel, "/agent")->size(), 0u)
        << "a container was not removed";
    return Read(*job_);
  }

  Records Run(const JobPlan& plan) {
    Start(plan);
    return Finish();
  }

  Records Shell(const std::string& script) { return Run(PlanOf(docker_->image(), script)); }

  void AwaitRunning() {
    ASSERT_TRUE(testing::Await([&] {
      const auto state = engine_.InspectContainer(ContainerNameOf("n1", kJob));
      return state.ok() && state->status == "running";
    }));
  }

  // Starts an agent that runs the script, and kills it when the container has printed "ready".
  void KillAgentOf(const std::string& script) {
    auto agent = Subprocess::Start(
        {.argv = {"/proc/self/exe", "--gtest_filter=KilledAgent.*"},
         .environment = {absl::StrCat(kAgentVariable, "=", folder_, "|", docker_->socket(), "|",
                                      docker_->image(), "|", script)}});
    ASSERT_TRUE(agent.ok()) << agent.status();
    const std::string records = absl::StrCat(folder_, "/", kJob, "/records");
    ASSERT_TRUE(testing::Await([&] {
      std::ifstream file(records);
      const std::string text((std::istreambuf_iterator<char>(file)), {});
      return text.find("ready") != std::string::npos;
    }));
    (*agent)->Signal(SIGKILL);
    (*agent)->Wait(absl::Minutes(1));
  }

  void Recover() {
    auto found = RecoverJob(PosixFileOps(), folder_, kJob, "n1");
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_NE(*found, nullptr);
    job_ = *std::move(found);
  }

  const std::string folder_ = ::testing::TempDir() + "/job-container";
  SpoolQuota quota_{int64_t{1} << 30};
  DockerEngine engine_{docker_->socket()};
  std::unique_ptr<NodeJobFolder> job_;
  std::unique_ptr<JobProcess> process_;
  std::thread thread_;
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
  JobProcess({"/agent", "n1", quota_, none}, *job_, kJob, PlanOf(docker_->image(), "true"), [] {
  }).Run();
  all = Read(*job_);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_FAILED);
  EXPECT_EQ(all.final.reason(), "DOCKER_UNREACHABLE");
}

// The container belongs to another agent with a copy of this node's identity, at the same daemon.
TEST_F(JobContainerTest, ContainerOfAnotherAgentIsLeftAlone) {
  ContainerSpec spec;
  spec.name = ContainerNameOf("n1", kJob);
  spec.image = docker_->image();
  ASSERT_TRUE(engine_.CreateContainer(spec).ok());
  Start(PlanOf(docker_->image(), "true"));
  thread_.join();
  const Records all = Read(*job_);
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
  // After the end nothing remains to be done.
  job_.reset();
  Recover();
  const Records again = Run(job_->container()->plan);
  EXPECT_EQ(again.finals, 1);
}

TEST_F(JobContainerTest, ContainerThatEndedWithoutItsAgentIsReported) {
  KillAgentOf("echo ready; sleep 0.3; head -c 100000 /dev/zero | tr '\\0' x; exit 9");
  ASSERT_TRUE(testing::Await(
      [&] { return engine_.InspectContainer(ContainerNameOf("n1", kJob))->ended(); }));
  Recover();
  const Records all = Run(job_->container()->plan);
  EXPECT_EQ(all.out, "ready\n" + std::string(100'000, 'x'));
  EXPECT_EQ(all.final.exit_code(), 9);
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

TEST_F(JobContainerTest, DamagedRecordsEndTheContainer) {
  KillAgentOf("echo ready; sleep 1000");
  std::fstream(absl::StrCat(folder_, "/", kJob, "/records"), std::ios::in | std::ios::out)
      .seekp(45)
      .put('#');
  Recover();
  const Records all = Run(job_->container()->plan);
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
