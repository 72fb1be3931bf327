// Jobs in containers of a real Docker daemon; the test reads the outbox as the root relay does.
#ifndef MUSTER_SERVICES_AGENT_JOBS_TESTING_JOB_CONTAINER_FIXTURE_H_
#define MUSTER_SERVICES_AGENT_JOBS_TESTING_JOB_CONTAINER_FIXTURE_H_

#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "services/agent/docker/testing/docker_fixture.h"
#include "services/agent/jobs/job_process.h"
#include "services/agent/jobs/job_recovery.h"
#include "services/agent/jobs/testing/memory_contents.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/strings.h"
#include "services/common/base/subprocess.h"
#include "testing/fixtures/await.h"

namespace muster {

inline constexpr char kAgentVariable[] = "MUSTER_TEST_AGENT";
// A variable of the test that an agent which it kills has too.
inline constexpr char kKilledAgentVariable[] = "MUSTER_TEST_KILLED_AGENT";
inline const std::string kJob(32, 'a');

// The records of a job.
struct Records {
  std::string out;
  std::string err;
  int64_t cut = 0;
  int started = 0;
  int finals = 0;
  std::vector<v1::JobRecord::Outputs> outputs;
  v1::JobRecord::Final final;
};

inline Records ReadRecords(NodeJobFolder& folder) {
  Records all;
  for (folder.log()->Rewind();;) {
    v1::JobRecords next;
    EXPECT_TRUE(folder.log()->NextRecords(1 << 20, nullptr, &next).ok());
    if (next.records().empty()) return all;
    for (const v1::JobRecord& record : next.records()) {
      EXPECT_EQ(all.finals, 0) << "a record follows the final one";
      if (record.has_started()) ++all.started;
      if (record.has_output()) {
        (record.output().stream() == v1::JOB_STREAM_STDERR ? all.err : all.out) +=
            record.output().data();
      }
      if (record.has_cut()) all.cut += record.cut().bytes();
      if (record.has_outputs()) all.outputs.push_back(record.outputs());
      if (record.has_final()) {
        ++all.finals;
        all.final = record.final();
      }
    }
    folder.log()->Ack(next.records().rbegin()->sequence());
  }
}

inline JobPlan PlanOf(const std::string& image, const std::string& script) {
  JobPlan plan;
  plan.argv = {"/bin/sh", "-c", script};
  plan.user = "65532:65532";
  plan.time_limit = absl::Minutes(1);
  plan.max_output = int64_t{16} << 20;
  plan.image = image;
  return plan;
}

// Returns the command of a job with this image.
using CommandOfImage = v1::SignedCommand (*)(const std::string& image);
inline v1::SignedCommand NoCommand(const std::string&) { return {}; }

// Returns the command of a deployment of this image. `document` follows the common lines of its
// type; `change` sets the rest of the deployment.
inline v1::SignedCommand DeploymentCommand(
    const std::string& image, std::string_view document,
    absl::FunctionRef<void(v1::Command::Deployment& deployment)> change) {
  v1::Command command;
  command.mutable_container()->set_image(image);
  v1::Command::Deployment& deployment = *command.mutable_container()->mutable_deployment();
  deployment.set_deployment(std::string(32, 'd'));
  deployment.set_action("deploy");
  deployment.set_type_document(absl::StrCat(
      "apiVersion: muster/v1\nkind: TemplateType\nname: t\nversion: 1.0.0\ncontract: 1\nimage: ",
      image, "\n", ToAbsl(document)));
  change(deployment);
  v1::SignedCommand signed_command;
  signed_command.set_command(command.SerializeAsString());
  return signed_command;
}

// Returns the secrets of an agent with this folder.
using SecretsOfAgent = SecretHost (*)(const std::string& folder);
inline SecretHost NoSecrets(const std::string&) { return {}; }

// Runs the agent that KillAgentOf kills. To be called by the test KilledAgent.RunsAContainer.
inline void RunKilledAgent(CommandOfImage command = NoCommand, SecretsOfAgent secrets = NoSecrets) {
  const char* variable = std::getenv(kAgentVariable);
  if (variable == nullptr) GTEST_SKIP() << "runs as a child of another test";
  const std::vector<std::string> parts = absl::StrSplit(variable, absl::MaxSplits('|', 3));
  auto folder =
      NodeJobFolder::Create(PosixFileOps(), parts[0], kJob, "n1", command(parts[2])).value();
  SpoolQuota quota(int64_t{1} << 30);
  DockerEngine docker(parts[1]);
  JobPlan plan = PlanOf(parts[2], parts[3]);
  plan.is_build = folder->ReadBuild().ok();
  testing::MemoryContents contents;
  JobProcess({"/agent", "n1", quota, docker, contents, secrets(parts[0])}, *folder, kJob, plan,
             [&] { folder->log()->Sync().IgnoreError(); })
      .Run();
}

class JobContainerFixture : public testing::DockerTest {
 protected:
  explicit JobContainerFixture(CommandOfImage command = NoCommand,
                               SecretsOfAgent secrets = NoSecrets)
      : command_(command), secrets_(secrets) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~JobContainerFixture() override {
    engine_.RemoveContainer(ContainerNameOf("n1", kJob)).IgnoreError();
  }

  // Runs the plan in its own thread, until Finish.
  void Start(const JobPlan& plan) {
    if (job_ == nullptr) {
      job_ =
          NodeJobFolder::Create(PosixFileOps(), folder_, kJob, "n1", command_(plan.image)).value();
    }
    process_ = std::make_unique<JobProcess>(JobHost{"/agent", "n1", quota_, engine_, contents_,
                                                    secrets_(folder_), workspaces_, save_within_},
                                            *job_, kJob, plan, [] {});
    thread_ = std::thread([this] { process_->Run(); });
  }

  Records Finish() {
    thread_.join();
    EXPECT_EQ(engine_.ListContainers(kContainerFolderLabel, "/agent")->size(), 0u)
        << "a container was not removed";
    return ReadRecords(*job_);
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

  void AwaitEnded() {
    ASSERT_TRUE(testing::Await([&] {
      const auto state = engine_.InspectContainer(ContainerNameOf("n1", kJob));
      return state.ok() && state->ended();
    }));
  }

  // Starts an agent that runs the script, and kills it when the container has printed this text.
  void KillAgentOf(const std::string& script, const std::string& until = "ready") {
    std::vector<std::string> environment = AllowListedEnvironment({kKilledAgentVariable});
    environment.push_back(absl::StrCat(kAgentVariable, "=", folder_, "|", docker_->socket(), "|",
                                       docker_->image(), "|", script));
    auto agent = Subprocess::Start({.argv = {"/proc/self/exe", "--gtest_filter=KilledAgent.*"},
                                    .environment = std::move(environment)});
    ASSERT_TRUE(agent.ok()) << agent.status();
    const std::string records = absl::StrCat(folder_, "/", kJob, "/records");
    ASSERT_TRUE(testing::Await([&] {
      std::ifstream file(records);
      const std::string text((std::istreambuf_iterator<char>(file)), {});
      return text.find(until) != std::string::npos;
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
  const CommandOfImage command_;
  testing::MemoryContents contents_;
  const SecretsOfAgent secrets_;
  WorkspaceOutbox* workspaces_ = nullptr;
  absl::Duration save_within_ = absl::Minutes(10);
  SpoolQuota quota_{int64_t{1} << 30};
  DockerEngine engine_{docker_->socket()};
  std::unique_ptr<NodeJobFolder> job_;
  std::unique_ptr<JobProcess> process_;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_TESTING_JOB_CONTAINER_FIXTURE_H_
