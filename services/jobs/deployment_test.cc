// Deployments from the call to their end, with a scripted root relay.
#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/deployments.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"
#include "services/common/errors/identity.h"
#include "services/common/errors/jobs.h"
#include "services/common/rpc/status.h"
#include "services/jobs/testing/jobs_fixture.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

v1::JobRecord Started(const std::string& node) {
  v1::JobRecord record;
  record.set_node(node);
  record.set_sequence(1);
  record.mutable_started()->mutable_time()->set_seconds(1'000);
  return record;
}

v1::JobRecord Outputs(const std::string& node, const std::string& value) {
  v1::JobRecord record;
  record.set_node(node);
  record.set_sequence(2);
  auto& output = *record.mutable_outputs()->add_outputs();
  output.set_name("text");
  output.set_value(value);
  return record;
}

v1::JobRecord Exited(const std::string& node, int exit_code, bool verified = true) {
  v1::JobRecord record;
  record.set_node(node);
  record.set_sequence(3);
  record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
  record.mutable_final()->set_exit_code(exit_code);
  record.mutable_final()->set_records_verified(verified);
  return record;
}

class DeploymentTest : public testing::JobsFixture {
 protected:
  // Creates a deployment on these nodes, and returns it once its job exists.
  v1::Deployment Begin(const std::vector<std::string>& nodes) {
    const auto created = Create(Request(nodes));
    EXPECT_TRUE(created.ok()) << created.status();
    EXPECT_TRUE(relay_.AwaitJob(created->job()));
    return *created;
  }

  void Succeed(const std::string& job, const std::string& node) {
    relay_.AddRecord(job, Outputs(node, "\"hello Ada\""));
    relay_.AddRecord(job, Exited(node, 0));
  }
};

TEST_F(DeploymentTest, SucceedsWithOutputsOfEachNode) {
  const v1::Deployment created = Begin({"n1", "n2"});
  for (const char* node : {"n1", "n2"}) {
    relay_.AddRecord(created.job(), Started(node));
    relay_.AddRecord(created.job(), Outputs(node, "\"hello Ada\""));
    relay_.AddRecord(created.job(), Exited(node, 0));
  }
  relay_.End(created.job(), v1::JOB_STATE_ENDED);
  const v1::Deployment ended = AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_SUCCEEDED);
  EXPECT_EQ(ended.succeeded(), 2);
  EXPECT_EQ(ended.targets(), 2);
  EXPECT_TRUE(ended.has_end_time());
  ASSERT_EQ(ended.nodes_size(), 2);
  EXPECT_EQ(ended.nodes(0).node(), "n1");
  EXPECT_EQ(ended.nodes(0).outputs().outputs(0).value(), "\"hello Ada\"");
  EXPECT_EQ(ended.nodes(1).start_time().seconds(), 1'000);
}

TEST_F(DeploymentTest, ParametersHaveTheirSourceAndSensitiveOnesNoValue) {
  const auto created = Create(Request({"n1"}));
  ASSERT_TRUE(created.ok()) << created.status();
  ASSERT_EQ(created->parameters_size(), 3);
  EXPECT_EQ(created->parameters(0).name(), "greeting");
  EXPECT_EQ(created->parameters(0).value(), "\"hello\"");
  EXPECT_EQ(created->parameters(0).source(), "type default");
  EXPECT_EQ(created->parameters(1).source(), "deployment");
  EXPECT_EQ(created->parameters(2).name(), "token");
  EXPECT_TRUE(created->parameters(2).sensitive());
  EXPECT_EQ(created->ShortDebugString().find("s3cret"), std::string::npos);
}

TEST_F(DeploymentTest, FailsIfOneNodeFails) {
  const v1::Deployment created = Begin({"n1", "n2"});
  Succeed(created.job(), "n1");
  relay_.AddRecord(created.job(), Exited("n2", 3));
  relay_.End(created.job(), v1::JOB_STATE_ENDED);
  const v1::Deployment ended = AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_FAILED);
  EXPECT_EQ(ended.succeeded(), 1);
  EXPECT_EQ(ended.problem(), "it succeeded on 1 of 2 nodes");
}

TEST_F(DeploymentTest, IsCancelledWithItsJob) {
  const v1::Deployment created = Begin({"n1"});
  relay_.End(created.job(), v1::JOB_STATE_CANCELLED);
  AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_CANCELLED);
}

TEST_F(DeploymentTest, OutputsThatTheNodeDidNotSignAreDropped) {
  const v1::Deployment created = Begin({"n1"});
  relay_.AddRecord(created.job(), Outputs("n1", "\"forged\""));
  relay_.AddRecord(created.job(), Exited("n1", 0, /*verified=*/false));
  relay_.End(created.job(), v1::JOB_STATE_ENDED);
  const v1::Deployment ended = AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_SUCCEEDED);
  ASSERT_EQ(ended.nodes_size(), 1);
  EXPECT_FALSE(ended.nodes(0).has_outputs());
}

TEST_F(DeploymentTest, NodeFailsWithOutputsThatTheDocumentsDoNotAdmit) {
  const v1::Deployment created = Begin({"n1", "n2"});
  Succeed(created.job(), "n1");
  relay_.AddRecord(created.job(), Outputs("n2", "5"));
  relay_.AddRecord(created.job(), Exited("n2", 0));
  relay_.End(created.job(), v1::JOB_STATE_ENDED);
  const v1::Deployment ended = AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_FAILED);
  ASSERT_EQ(ended.nodes_size(), 2);
  EXPECT_TRUE(ended.nodes(0).has_outputs());
  EXPECT_FALSE(ended.nodes(1).has_outputs());
  EXPECT_EQ(ended.nodes(1).final().reason(), "OUTPUTS_INVALID");
}

TEST_F(DeploymentTest, OutputsOfANodeThatFailedAreDropped) {
  const v1::Deployment created = Begin({"n1"});
  relay_.AddRecord(created.job(), Outputs("n1", "\"half\""));
  v1::JobRecord lost = Exited("n1", 0);
  lost.mutable_final()->set_outcome(v1::JOB_OUTCOME_LOST);
  relay_.AddRecord(created.job(), lost);
  relay_.End(created.job(), v1::JOB_STATE_ENDED);
  const v1::Deployment ended = AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_FAILED);
  EXPECT_FALSE(ended.nodes(0).has_outputs());
}

TEST_F(DeploymentTest, RepeatedCallReturnsTheStoredDeployment) {
  const auto request = Request({"n1"});
  const auto first = Create(request);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(relay_.AwaitJob(first->job()));
  const auto second = Create(request);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->deployment(), first->deployment());
  EXPECT_EQ(relay_.submissions(), 1);
}

TEST_F(DeploymentTest, AnotherRequestWithItsIdIsRefused) {
  const auto request = Request({"n1"});
  ASSERT_TRUE(Create(request).ok());
  const auto other = Create(SignedRequest(CommandOf(request), {"n2"}));
  EXPECT_EQ(ReasonOf(other.status()), "DEPLOYMENT_EXISTS");
}

TEST_F(DeploymentTest, AnotherDeploymentOfItsJobIsRefused) {
  const auto request = Request({"n1"});
  ASSERT_TRUE(Create(request).ok());
  v1::Command command = CommandOf(request);
  command.mutable_container()->mutable_deployment()->set_deployment(std::string(32, 'a'));
  const auto other = Create(SignedRequest(command, {"n1"}));
  EXPECT_EQ(ReasonOf(other.status()), "DEPLOYMENT_EXISTS");
  const std::string first = CommandOf(request).container().deployment().deployment();
  EXPECT_TRUE(
      absl::StrContains(other.status().message(),
                        absl::StrCat("job ", command.job(), " is the job of deployment ", first)))
      << other.status();
}

TEST_F(DeploymentTest, IsPendingWithTheReasonUntilTheRelayAnswers) {
  relay_.Stop();
  const auto created = Create(Request({"n1"}));
  ASSERT_TRUE(created.ok()) << created.status();
  ASSERT_TRUE(testing::Await([&] {
    return absl::StrContains(Get(created->deployment())->problem(), "Connection refused");
  }));
  EXPECT_EQ(Get(created->deployment())->state(), v1::DEPLOYMENT_STATE_PENDING);
  relay_.Start();
  ASSERT_TRUE(relay_.AwaitJob(created->job()));
  Succeed(created->job(), "n1");
  relay_.End(created->job(), v1::JOB_STATE_ENDED);
  EXPECT_EQ(AwaitState(created->deployment(), v1::DEPLOYMENT_STATE_SUCCEEDED).problem(), "");
}

TEST_F(DeploymentTest, RefusedCommandFailsWithTheReason) {
  relay_.AnswerWith({ToGrpc(errors::CommandRefused("its signer was revoked"))});
  const auto created = Create(Request({"n1"}));
  const v1::Deployment ended = AwaitState(created->deployment(), v1::DEPLOYMENT_STATE_FAILED);
  EXPECT_TRUE(absl::StrContains(ended.problem(), "its signer was revoked")) << ended.problem();
}

TEST_F(DeploymentTest, ExpiredCommandThatNeverArrivedFails) {
  relay_.AnswerWith({ToGrpc(errors::CommandExpired(absl::Now()))});
  const auto created = Create(Request({"n1"}));
  const v1::Deployment ended = AwaitState(created->deployment(), v1::DEPLOYMENT_STATE_FAILED);
  EXPECT_TRUE(absl::StrContains(ended.problem(), "expired")) << ended.problem();
}

// The answer to an earlier call was lost.
TEST_F(DeploymentTest, ExpiredCommandWhoseJobExistsIsFollowed) {
  relay_.KeepRefused();
  relay_.AnswerWith({ToGrpc(errors::CommandExpired(absl::Now()))});
  const v1::Deployment created = Begin({"n1"});
  Succeed(created.job(), "n1");
  relay_.End(created.job(), v1::JOB_STATE_ENDED);
  AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_SUCCEEDED);
}

TEST_F(DeploymentTest, RecordsAreReadOnceAcrossARestart) {
  const v1::Deployment created = Begin({"n1"});
  relay_.AddRecord(created.job(), Started("n1"));
  ASSERT_TRUE(testing::Await([&] { return Get(created.deployment())->nodes_size() == 1; }));
  StopService();
  Succeed(created.job(), "n1");
  relay_.End(created.job(), v1::JOB_STATE_ENDED);
  const size_t watches = relay_.watched_from().size();
  StartService();
  const v1::Deployment ended = AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_SUCCEEDED);
  EXPECT_TRUE(ended.nodes(0).has_start_time());
  EXPECT_EQ(relay_.submissions(), 1);
  ASSERT_GT(relay_.watched_from().size(), watches);
  EXPECT_EQ(relay_.watched_from()[watches], 1);
}

TEST_F(DeploymentTest, BrokenWatchIsResumed) {
  const v1::Deployment created = Begin({"n1"});
  relay_.AddRecord(created.job(), Started("n1"));
  ASSERT_TRUE(testing::Await([&] { return Get(created.deployment())->nodes_size() == 1; }));
  relay_.CutWatches();
  Succeed(created.job(), "n1");
  relay_.End(created.job(), v1::JOB_STATE_ENDED);
  AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_SUCCEEDED);
}

TEST_F(DeploymentTest, JobThatTheRelayLostFails) {
  const v1::Deployment created = Begin({"n1"});
  AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_RUNNING);
  relay_.Forget(created.job());
  relay_.CutWatches();
  const v1::Deployment ended = AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_FAILED);
  EXPECT_TRUE(absl::StrContains(ended.problem(), "not found")) << ended.problem();
}

TEST_F(DeploymentTest, ListHasNoParameters) {
  ASSERT_TRUE(Create(Request({"n1"})).ok());
  grpc::ClientContext context;
  v1::ListDeploymentsResponse list;
  ASSERT_TRUE(v1::DeploymentService::NewStub(Connect(fleet_.admin()))
                  ->ListDeployments(&context, {}, &list)
                  .ok());
  ASSERT_EQ(list.deployments_size(), 1);
  EXPECT_EQ(list.deployments(0).parameters_size(), 0);
}

TEST_F(DeploymentTest, DocumentThatIsNotStoredIsRefused) {
  v1::Command command = CommandOf(Request({"n1"}));
  auto& document = *command.mutable_container()->mutable_deployment()->mutable_type_document();
  document.replace(document.find("1.0.0"), 5, "1.0.1");
  EXPECT_EQ(ReasonOf(Create(SignedRequest(command, {"n1"})).status()), "TYPE_NOT_FOUND");
  document = CommandOf(Request({"n1"})).container().deployment().type_document();
  document.replace(document.find("\"maxLength\":20"), 14, "\"maxLength\":99");
  EXPECT_EQ(ReasonOf(Create(SignedRequest(command, {"n1"})).status()), "INVALID_COMMAND");
}

TEST_F(DeploymentTest, ParametersAreCheckedAtThePlanAndAtTheCreation) {
  v1::Command command = CommandOf(Request({"n1"}));
  for (const char* parameters :
       {"{}", R"({"name": 5})", R"({"name": "Ada", "nmae": "x"})", "[]", "{", "\"\\u0000\""}) {
    v1::PlanDeploymentRequest wanted;
    wanted.set_type("greet");
    wanted.set_parameters(parameters);
    EXPECT_EQ(ReasonOf(Plan(wanted).status()), "INVALID_PARAMETERS") << parameters;
    command.mutable_container()->mutable_deployment()->set_parameters(parameters);
    EXPECT_EQ(ReasonOf(Create(SignedRequest(command, {"n1"})).status()), "INVALID_PARAMETERS")
        << parameters;
  }
}

TEST_F(DeploymentTest, TemplateFixesAParameterOfItsType) {
  ASSERT_TRUE(CreateType(TypeDocument("1.0.0")).ok());
  ASSERT_TRUE(CreateTemplate(TemplateDocument("2.0.0")).ok());
  v1::PlanDeploymentRequest wanted;
  wanted.set_template_("hi");
  wanted.set_parameters(R"({"name": "Ada"})");
  const auto plan = Plan(wanted);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->parameters(0).value(), "\"hi\"");
  EXPECT_EQ(plan->parameters(0).source(), "template");
  wanted.set_parameters(R"({"name": "Ada", "greeting": "hey"})");
  EXPECT_EQ(ReasonOf(Plan(wanted).status()), "INVALID_PARAMETERS");
  wanted.set_action("destroy");
  EXPECT_EQ(ReasonOf(Plan(wanted).status()), "INVALID_PARAMETERS");
}

TEST_F(DeploymentTest, FilesOfAnAdHocTypeAreRecordedWithoutTheirContent) {
  ASSERT_TRUE(CreateType(absl::StrCat(TypeDocument("2.0.0"), "adHoc: true\n")).ok());
  v1::PlanDeploymentRequest wanted;
  wanted.set_type("greet@2.0.0");
  wanted.set_parameters(R"({"name": "Ada"})");
  EXPECT_EQ(ReasonOf(Plan(wanted).status()), "INVALID_FILES");
  v1::Command::File& file = *wanted.add_files();
  file.set_path("main.sh");
  file.set_content("echo hi\n");
  file.set_executable(true);
  const auto plan = Plan(wanted);
  ASSERT_TRUE(plan.ok()) << plan.status();
  v1::Command command = CommandOf(Request({"n1"}));
  const std::string id = command.container().deployment().deployment();
  v1::Command::Deployment& content = *command.mutable_container()->mutable_deployment();
  content = plan->deployment();
  content.set_deployment(id);
  const auto created = Create(SignedRequest(command, {"n1"}));
  ASSERT_TRUE(created.ok()) << created.status();
  ASSERT_EQ(created->files_size(), 1);
  EXPECT_EQ(created->files(0).path(), "main.sh");
  EXPECT_EQ(created->files(0).size(), 8);
  EXPECT_EQ(ToHex(created->files(0).sha256()),
            "ab08508fdf5ca4da5c4995987bc41c56c048aaa5eeb046417ae4049b7d40286e");
  EXPECT_TRUE(created->files(0).executable());
  content.mutable_files(0)->set_path("/main.sh");
  EXPECT_EQ(ReasonOf(Create(SignedRequest(command, {"n1"})).status()), "INVALID_FILES");
}

}  // namespace
}  // namespace muster
