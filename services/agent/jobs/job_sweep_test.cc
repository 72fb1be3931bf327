// A real Docker daemon, and a runner of jobs.
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/agent/docker/testing/docker_fixture.h"
#include "services/agent/jobs/command_container.h"
#include "services/agent/jobs/deployment_state.h"
#include "services/agent/jobs/job_folder.h"
#include "services/agent/jobs/testing/job_runner_fixture.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/process_identity.h"
#include "services/common/jobs/final_record.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

class JobSweepTest : public JobRunnerFixture {
 protected:
  std::string Create(const std::string& name, const std::string& folder,
                     const std::string& node = kNode,
                     const std::string& job = std::string(32, 'b')) {
    ContainerSpec spec;
    spec.name = name;
    spec.image = docker_.image();
    spec.labels = {{"muster", "test"},
                   {std::string(kContainerFolderLabel), folder},
                   {std::string(kContainerNodeLabel), node},
                   {std::string(kContainerJobLabel), job}};
    spec.command = {"/bin/sleep", "1000"};
    return engine_.CreateContainer(spec).value_or("");
  }

  // Returns the folder of a deployment whose container may run.
  std::unique_ptr<NodeJobFolder> MakeJob(const std::string& job) {
    v1::Command command;
    command.mutable_container()->mutable_deployment()->set_action("deploy");
    v1::SignedCommand signed_command;
    signed_command.set_command(command.SerializeAsString());
    auto folder =
        NodeJobFolder::Create(PosixFileOps(), folder_ + "/jobs", job, kNode, signed_command);
    EXPECT_TRUE(folder.ok()) << folder.status();
    JobPlan plan;
    plan.image = docker_.image();
    plan.time_limit = absl::Minutes(1);
    EXPECT_TRUE((*folder)->NoteContainer({BootId(), absl::Now(), SinceBoot(), plan}).ok());
    return *std::move(folder);
  }

  void BeginWithSweep() {
    docker_socket_ = docker_.socket();
    first_sweep_ = absl::ZeroDuration();
    Begin();
  }

  bool IsRemoved(const std::string& container) {
    return absl::IsNotFound(engine_.InspectContainer(container).status());
  }

  testing::TestDocker docker_;
  DockerEngine engine_{docker_.socket()};
};

// A job left it when Docker did not answer.
TEST_F(JobSweepTest, ContainerWithoutAJobIsRemoved) {
  const std::string left = Create("left", folder_);
  const std::string foreign = Create("foreign", folder_ + "-of-another-agent");
  ASSERT_TRUE(engine_.InspectContainer(left).ok());
  End();
  BeginWithSweep();
  EXPECT_TRUE(testing::Await([&] { return IsRemoved(left); }));
  EXPECT_TRUE(engine_.InspectContainer(foreign).ok());
}

// Both agents have separate folders at the same path.
TEST_F(JobSweepTest, ContainerOfAnotherNodeWithTheSameFolderIsKept) {
  const std::string foreign = Create("a-foreign", folder_, "n2");
  const std::string left = Create("b-left", folder_);
  End();
  BeginWithSweep();
  EXPECT_TRUE(testing::Await([&] { return IsRemoved(left); }));
  End();  // waits for the rest of the sweep
  EXPECT_TRUE(engine_.InspectContainer(foreign).ok());
}

// The agent was killed after the final record of the job, before it removed the rest.
TEST_F(JobSweepTest, ContainerAndStateOfAJobThatEndedBeforeTheStartAreRemoved) {
  End();
  const std::string job(32, 'c');
  {
    const auto folder = MakeJob(job);
    ASSERT_TRUE(folder->log()->Append(FinalRecord(v1::JOB_OUTCOME_EXITED, "", "")).ok());
    ASSERT_TRUE(DeploymentState(folder->path()).Create("{}").ok());
  }
  const std::string container = Create("left", folder_, kNode, job);
  BeginWithSweep();
  EXPECT_TRUE(testing::Await([&] { return IsRemoved(container); }));
  const std::string state = DeploymentState(folder_ + "/jobs/" + job).folder();
  EXPECT_TRUE(testing::Await([&] { return !std::filesystem::exists(state); }));
}

TEST_F(JobSweepTest, ContainerOfAJobThatCannotBeReadForNowIsFollowedLater) {
  End();
  const std::string job(32, 'c');
  const std::string path = MakeJob(job)->path() + "/job";
  std::filesystem::rename(path, folder_ + "/saved");
  std::filesystem::create_symlink("job", path);  // each attempt to open it fails
  const std::string container = Create(ContainerNameOf(kNode, job), folder_, kNode, job);
  ASSERT_TRUE(engine_.StartContainer(container).ok());
  const std::string left = Create("left", folder_);
  BeginWithSweep();
  EXPECT_TRUE(testing::Await([&] { return IsRemoved(left); }));
  ASSERT_TRUE(engine_.InspectContainer(container).ok()) << "it was removed";
  v1::JobCancel cancel;
  cancel.set_job(job);
  runner_->Cancel(cancel);
  std::filesystem::rename(folder_ + "/saved", path);
  const JobAtRoot received = AwaitFinal(job);
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_CANCELLED) << received.final->detail();
  EXPECT_EQ(received.started, 1);
}

// The next process of the agent follows it.
TEST_F(JobSweepTest, ContainerOfAJobWhoseOutcomeIsNotStoredIsKeptAfterTheStop) {
  End();
  sweep_every_ = absl::Milliseconds(1);
  BeginWithSweep();
  const v1::Command command =
      TestCommands::Exec({"/bin/sh", "-c", "head -c 200000 /dev/zero; sleep 1000"});
  runner_->Receive(commands_.ForNode(command, kNode));
  const std::string records = folder_ + "/jobs/" + command.job() + "/records";
  ASSERT_TRUE(testing::Await([&] {
    std::error_code missing;
    return std::filesystem::file_size(records, missing) > 200'000 && !missing;
  }));
  const std::string container = Create("kept", folder_, kNode, command.job());
  {
    // No more records can be stored, as on a full disk.
    signal(SIGXFSZ, SIG_IGN);
    rlimit before = {};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit small = {200'000, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    runner_->Stop(absl::ZeroDuration());
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  }
  const std::string left = Create("left", folder_);
  EXPECT_TRUE(testing::Await([&] { return IsRemoved(left); }));
  const std::string next = Create("left-2", folder_);  // a sweep began after the stop
  EXPECT_TRUE(testing::Await([&] { return IsRemoved(next); }));
  EXPECT_FALSE(IsRemoved(container));
}

}  // namespace
}  // namespace muster
