// A real Docker daemon; the test reads the outbox as the root relay does.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/agent/jobs/deployment_state.h"
#include "services/agent/jobs/testing/job_container_fixture.h"
#include "services/common/errors/relay.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// The tests set the command, as an image would.
v1::SignedCommand DeploymentOf(const std::string& image) {
  constexpr char kDocument[] =
      "parameters:\n"
      "  region: {schema: {type: string}, required: true}\n"
      "  size: {schema: {type: integer}, value: 3}\n"
      "outputs:\n"
      "  url: {schema: {type: string}, required: true}\n"
      "  port: {schema: {type: integer}}\n"
      "  token: {sensitive: true}\n";
  return DeploymentCommand(image, kDocument, [](v1::Command::Deployment& deployment) {
    deployment.set_parameters(R"({"region": "eu"})");
  });
}

constexpr char kAwaitGo[] = "while [ ! -e /state/go ]; do sleep 0.1; done;";

// The part of an agent that is killed: see KillAgentOf.
TEST(KilledAgent, RunsAContainer) { RunKilledAgent(DeploymentOf); }

class JobDeploymentTest : public JobContainerFixture {
 protected:
  JobDeploymentTest() : JobContainerFixture(DeploymentOf) {}

  JobPlan DeploymentPlan(const std::string& script) {
    JobPlan plan = PlanOf(docker_->image(), script);
    plan.deployment = std::string(32, 'd');
    return plan;
  }

  // The deployment brings these files.
  void SetFiles(const std::vector<v1::Command::File>& files) {
    v1::SignedCommand signed_command = DeploymentOf(docker_->image());
    v1::Command command;
    ASSERT_TRUE(command.ParseFromString(signed_command.command()));
    v1::Command::Deployment& deployment = *command.mutable_container()->mutable_deployment();
    deployment.mutable_type_document()->append("adHoc: true\n");
    deployment.mutable_files()->Assign(files.begin(), files.end());
    signed_command.set_command(command.SerializeAsString());
    job_ = NodeJobFolder::Create(PosixFileOps(), folder_, kJob, "n1", signed_command).value();
  }

  // Runs a deployment; its state is removed with its container.
  Records Deploy(const std::string& script) {
    Records all = Run(DeploymentPlan(script));
    EXPECT_FALSE(std::filesystem::exists(state_));
    return all;
  }

  static void ExpectOutputs(const Records& all,
                            const std::vector<std::pair<std::string, std::string>>& want) {
    ASSERT_EQ(all.outputs.size(), 1u) << all.final.ShortDebugString();
    std::vector<std::pair<std::string, std::string>> found;
    for (const auto& output : all.outputs[0].outputs()) {
      found.emplace_back(output.name(), output.value());
    }
    EXPECT_EQ(found, want);
    EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_EXITED);
    EXPECT_EQ(all.final.exit_code(), 0);
    EXPECT_EQ(all.final.reason(), "");
  }

  static void ExpectFailed(const Records& all, const std::string& reason,
                           const std::string& detail) {
    EXPECT_EQ(all.outputs.size(), 0u);
    EXPECT_EQ(all.finals, 1);
    EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_FAILED);
    EXPECT_EQ(all.final.reason(), reason);
    EXPECT_EQ(all.final.exit_code(), 0);
    EXPECT_THAT(all.final.detail(), HasSubstr(detail));
  }

  // Ends kAwaitGo.
  void Go() const { std::ofstream(state_ + "/go") << "go"; }

  const std::string state_ = absl::StrCat(folder_, "/", kJob, "/state");
};

TEST_F(JobDeploymentTest, ContainerReadsItsParametersAndItsOutputsAreRecorded) {
  Start(DeploymentPlan(absl::StrCat(
      "cat /state/parameters.json; id -u; echo x 2>/dev/null > /state/parameters.json || echo ro;"
      "echo https://a.example > /state/outputs/url; echo 80 > /state/outputs/port;"
      "echo swordfish > /state/outputs/token; echo y > /state/outputs/undeclared;"
      "mkdir -p /state/work/a; echo z > /state/work/a/b; chmod 0 /state/work;",
      kAwaitGo)));
  AwaitRunning();
  const auto container = engine_.InspectContainer(ContainerNameOf("n1", kJob));
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(container->labels.at("muster.deployment"), std::string(32, 'd'));
  struct stat info = {};
  ASSERT_EQ(stat(job_->path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700) << "no other user of the node may enter it";
  Go();
  const Records all = Finish();
  EXPECT_EQ(all.out, "{\"region\":\"eu\",\"size\":3}65532\nro\n");
  ExpectOutputs(all, {{"port", "80"}, {"token", ""}, {"url", "\"https://a.example\""}});
  EXPECT_EQ(all.started, 1);
  EXPECT_FALSE(std::filesystem::exists(state_));
}

// The policy admits the files: see command_judge_test.cc.
TEST_F(JobDeploymentTest, ContainerReadsItsFilesAndCannotChangeThem) {
  v1::Command::File data;
  data.set_path("lib/data");
  data.set_content("from a file\n");
  v1::Command::File script;
  script.set_path("main.sh");
  script.set_content("#!/bin/sh\ncat /files/lib/data; echo x >/files/lib/data || echo ro\n");
  script.set_executable(true);
  SetFiles({data, script});
  const Records all = Deploy("/files/main.sh 2>/dev/null; echo u > /state/outputs/url");
  EXPECT_EQ(all.out, "from a file\nro\n");
  ExpectOutputs(all, {{"url", "\"u\""}});
  EXPECT_FALSE(std::filesystem::exists(absl::StrCat(folder_, "/", kJob, "/files")));
}

TEST_F(JobDeploymentTest, ContainerReadsFilesThatAreNotInItsCommand) {
  const std::string bytes(5'000, 'x');
  SetFiles({contents_.Add("data", bytes)});
  contents_.FailWith({errors::JobsUnreachable()});
  const Records all = Deploy("cat /files/data; echo u > /state/outputs/url");
  EXPECT_EQ(all.out, bytes);
  ExpectOutputs(all, {{"url", "\"u\""}});
  EXPECT_FALSE(std::filesystem::exists(absl::StrCat(folder_, "/", kJob, "/files")));
}

TEST_F(JobDeploymentTest, ContainerWithOtherFilesThanTheSignedOnesDoesNotStart) {
  const v1::Command::File file = contents_.Add("data", "signed");
  contents_.Replace(file, "forged");
  SetFiles({file});
  const Records all = Deploy("true");
  ExpectFailed(all, "CONTENT_DAMAGED", "\"data\"");
  EXPECT_EQ(all.started, 0);
  EXPECT_FALSE(std::filesystem::exists(absl::StrCat(folder_, "/", kJob, "/files")));
}

TEST_F(JobDeploymentTest, CancelEndsTheReadsOfFiles) {
  SetFiles({contents_.Add("data", "bytes")});
  contents_.FailWith(std::vector<absl::Status>(1'000, errors::JobsUnreachable()));
  Start(DeploymentPlan("true"));
  EXPECT_TRUE(testing::Await([this] { return !contents_.offsets().empty(); }));
  process_->Stop(JobStop::kCancelled);
  const Records all = Finish();
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_CANCELLED);
  EXPECT_EQ(all.started, 0);
}

// Docker refuses two folders at one path.
TEST_F(JobDeploymentTest, VolumeOfTheImageDoesNotReplaceTheState) {
  JobPlan plan = DeploymentPlan("echo u > /state/outputs/url");
  plan.image = docker_->MakeImage(R"(["/bin/sh"])", "/state");
  ExpectOutputs(Run(plan), {{"url", "\"u\""}});
}

TEST_F(JobDeploymentTest, MissingOrInvalidOutputIsAFailure) {
  const Records all = Deploy("echo text > /state/outputs/port; echo out");
  ExpectFailed(all, "OUTPUTS_INVALID", "url: is missing");
  EXPECT_THAT(all.final.detail(), HasSubstr("port: \"text\" is a string, and must be an integer"));
  EXPECT_EQ(all.final.stdout_bytes(), 4);
  EXPECT_EQ(all.out, "out\n");
}

// The agent may read what the container may not.
TEST_F(JobDeploymentTest, LinkAsOutputIsAFailure) {
  std::ofstream(folder_ + "/secret") << "\"secret\"";
  const Records all = Deploy(absl::StrCat("ln -s ", folder_, "/secret /state/outputs/url"));
  ExpectFailed(all, "OUTPUTS_INVALID", "url: cannot be read: it is not a regular file");
}

TEST_F(JobDeploymentTest, OutputsOfAFailedContainerAreNotRead) {
  const Records all = Deploy("echo u > /state/outputs/url; exit 3");
  EXPECT_EQ(all.outputs.size(), 0u);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(all.final.exit_code(), 3);
}

TEST_F(JobDeploymentTest, ContainerWithATooLargeStateIsKilled) {
  ExpectFailed(Deploy("trap '' TERM; echo u > /state/outputs/url;"
                      "dd if=/dev/zero of=/state/x bs=1M count=100; while :; do sleep 1; done"),
               "STATE_TOO_LARGE", "/state has more than 64 MiB");
}

TEST_F(JobDeploymentTest, TooLargeStateOfAnEndedContainerIsAFailure) {
  ExpectFailed(Deploy("dd if=/dev/zero of=/state/x bs=1M count=100; exit 3"), "STATE_TOO_LARGE",
               "/state has more than 64 MiB");
}

TEST_F(JobDeploymentTest, ContainerThatCannotStartLeavesNoState) {
  JobPlan plan = DeploymentPlan("true");
  plan.image = "sha256:" + std::string(64, '1');
  ExpectFailed(Run(plan), "IMAGE_NOT_FOUND", "");
  EXPECT_FALSE(std::filesystem::exists(state_));
}

TEST_F(JobDeploymentTest, UnreadableCommandIsNotStarted) {
  v1::Command command;
  command.mutable_container()->mutable_deployment()->set_type_document("{}");
  v1::SignedCommand signed_command;
  signed_command.set_command(command.SerializeAsString());
  job_ = NodeJobFolder::Create(PosixFileOps(), folder_, kJob, "n1", signed_command).value();
  ExpectFailed(Deploy("true"), "INVALID_DOCUMENT", "");
}

TEST_F(JobDeploymentTest, ContainerOfAKilledAgentIsFollowedAndItsOutputsAreRead) {
  KillAgentOf(absl::StrCat("echo ready;", kAwaitGo, "echo u > /state/outputs/url"));
  Recover();
  EXPECT_FALSE(job_->log()->has_final());
  Start(job_->container()->plan);
  Go();
  ExpectOutputs(Finish(), {{"url", "\"u\""}});
  EXPECT_FALSE(std::filesystem::exists(state_));
}

TEST_F(JobDeploymentTest, OutputsOfAContainerThatEndedWithoutItsAgentAreRead) {
  KillAgentOf(absl::StrCat("echo ready;", kAwaitGo, "echo u > /state/outputs/url"));
  Go();
  AwaitEnded();
  Recover();
  ExpectOutputs(Run(job_->container()->plan), {{"url", "\"u\""}});
}

// The agent was killed between both records.
TEST_F(JobDeploymentTest, OutputsAreNotRecordedTwice) {
  KillAgentOf(absl::StrCat("echo ready;", kAwaitGo, "echo u > /state/outputs/url"));
  Go();
  AwaitEnded();
  Recover();
  v1::JobRecord record;
  auto& output = *record.mutable_outputs()->add_outputs();
  output.set_name("url");
  output.set_value("\"u\"");
  ASSERT_TRUE(job_->log()->Append(record).ok());
  job_.reset();
  Recover();
  ExpectOutputs(Run(job_->container()->plan), {{"url", "\"u\""}});
}

TEST_F(JobDeploymentTest, StateThatGrewWithoutAnAgentIsTooLarge) {
  KillAgentOf(absl::StrCat("echo ready;", kAwaitGo,
                           "dd if=/dev/zero of=/state/x bs=1M count=100; sleep 1000"));
  Go();
  ASSERT_TRUE(testing::Await([&] {
    std::error_code none;
    return std::filesystem::file_size(state_ + "/x", none) >= (100 << 20) && !none;
  }));
  Recover();
  ExpectFailed(Run(job_->container()->plan), "STATE_TOO_LARGE", "64 MiB");
  EXPECT_FALSE(std::filesystem::exists(state_));
}

}  // namespace
}  // namespace muster
