// A real Docker daemon, and a runner of jobs.
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/agent/docker/testing/docker_fixture.h"
#include "services/agent/jobs/secret_folders.h"
#include "services/agent/jobs/testing/job_runner_fixture.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class JobRunnerDeploymentTest : public JobRunnerFixture {
 protected:
  JobRunnerDeploymentTest() {
    End();
    docker_socket_ = docker_.socket();
    SetPolicy("containers: [{images: ['*'], actions: [deployment], memory: 64MiB}]");
    Begin();
  }

  v1::Command Deploy(const std::string& parameters) const {
    v1::Command command = TestCommands::Exec({});
    command.set_action("deployment");
    command.mutable_container()->set_image(image_);
    v1::Command::Deployment& deployment = *command.mutable_container()->mutable_deployment();
    deployment.set_deployment(std::string(32, 'd'));
    deployment.set_action("destroy");
    deployment.set_type_document(absl::StrCat(
        "apiVersion: muster/v1\nkind: TemplateType\nname: t\nversion: 1.0.0\ncontract: 1\nimage: ",
        image_,
        "\n"
        "actions: [deploy, destroy]\n"
        "limits: {time: 20s}\n"
        "parameters: {size: {schema: {type: integer}, required: true}}\n"
        "outputs: {done: {schema: {type: object}, required: true}}\n"));
    deployment.set_parameters(parameters);
    return command;
  }

  testing::TestDocker docker_;
  const std::string image_ = docker_.MakeImage(
      R"(["/bin/sh", "-c", "cp /state/parameters.json /state/outputs/done; env"])");
};

TEST_F(JobRunnerDeploymentTest, DeploymentRunsTheCommandOfItsImage) {
  const v1::Command command = Deploy(R"({"size": 3})");
  const JobAtRoot received = Run(command);
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_EXITED) << received.final->detail();
  EXPECT_EQ(received.final->exit_code(), 0);
  ASSERT_TRUE(received.outputs);
  ASSERT_EQ(received.outputs->outputs_size(), 1);
  EXPECT_EQ(received.outputs->outputs(0).name(), "done");
  EXPECT_EQ(received.outputs->outputs(0).value(), R"({"size":3})");
  for (const std::string& variable :
       {absl::StrCat("MUSTER_JOB=", command.job()), "MUSTER_DEPLOYMENT=" + std::string(32, 'd'),
        std::string("MUSTER_ACTION=destroy"), std::string("MUSTER_CONTRACT=1")}) {
    EXPECT_THAT(received.out, HasSubstr(variable + "\n"));
  }
  const std::string state = absl::StrCat(folder_, "/jobs/", command.job(), "/state");
  EXPECT_TRUE(testing::Await([&] { return !std::filesystem::exists(state); }));
}

TEST_F(JobRunnerDeploymentTest, DeploymentWithInvalidParametersIsRefused) {
  ExpectRefused(commands_.ForNode(Deploy("{}"), kNode), "INVALID_PARAMETERS");
}

TEST_F(JobRunnerDeploymentTest, DeploymentIsNotAdmittedAsAContainer) {
  SetPolicy("containers: [{images: ['*']}]");
  ExpectRefused(commands_.ForNode(Deploy(R"({"size": 3})"), kNode), "POLICY_REFUSED");
}

TEST_F(JobRunnerDeploymentTest, DeploymentWithASecretNeedsARuleForItAndAWayToIt) {
  v1::Command command = Deploy(R"({"size": 3})");
  v1::Command::Deployment& deployment = *command.mutable_container()->mutable_deployment();
  deployment.mutable_type_document()->append("secrets: {db: {}}\n");
  auto& secret = *deployment.add_secrets();
  secret.set_name("db");
  secret.set_secret("prod/db");
  secret.set_version(1);
  ExpectRefused(commands_.ForNode(command, kNode), "POLICY_REFUSED");
  SetPolicy("containers: [{images: ['*'], actions: [deployment], secrets: ['prod/*']}]");
  command.set_job(std::string(32, 'e'));
  ExpectRefused(commands_.ForNode(command, kNode), "SECRET_UNAVAILABLE", v1::JOB_OUTCOME_FAILED);
}

TEST_F(JobRunnerDeploymentTest, SecretsThatAKilledAgentLeftAreRemovedAtTheStart) {
  End();
  const SecretFolders folders(folder_, kNode, DefaultMemoryFolders());
  v1::SecretValues values;
  values.add_values()->set_name("db");
  const std::string job(32, 'e');
  ASSERT_TRUE(folders.Create(job, "65532", values).ok());
  Begin();
  EXPECT_FALSE(std::filesystem::exists(*folders.PathOf(job)));
}

}  // namespace
}  // namespace muster
