// Retries and destructions of deployments, with a scripted root relay.
#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/deployments.grpc.pb.h"
#include "muster/v1/deployments.pb.h"
#include "services/common/base/error.h"
#include "services/common/errors/identity.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/status.h"
#include "services/jobs/testing/jobs_fixture.h"
#include "testing/fixtures/test_call.h"

namespace muster {
namespace {

class DeploymentRetryTest : public testing::JobsFixture {
 protected:
  // Creates a deployment of a type with the action "destroy".
  v1::Deployment CreateFirst(const std::vector<std::string>& nodes) {
    v1::Command command = CommandOf(Request(nodes));
    const std::string document =
        absl::StrCat(TypeDocument("1.1.0"), "actions: [deploy, destroy]\n");
    const auto type = CreateType(document);
    EXPECT_TRUE(type.ok()) << type.status();
    command.mutable_container()->mutable_deployment()->set_type_document(type->document());
    const auto created = Create(SignedRequest(std::move(command), nodes));
    EXPECT_TRUE(created.ok()) << created.status();
    return *created;
  }

  void AddFinal(const v1::Deployment& deployment, const std::string& node, v1::JobOutcome outcome,
                int exit_code = 0) {
    v1::JobRecord record;
    record.set_node(node);
    record.set_sequence(1);
    record.mutable_final()->set_outcome(outcome);
    record.mutable_final()->set_exit_code(exit_code);
    relay_.AddRecord(deployment.job(), record);
  }

  v1::Deployment End(const v1::Deployment& deployment, v1::DeploymentState state) {
    relay_.End(deployment.job(), v1::JOB_STATE_ENDED);
    return AwaitState(deployment.deployment(), state);
  }

  // Creates a deployment that fails on n1, succeeds on n2, and has an unknown outcome on n3.
  v1::Deployment CreateFailed() {
    const v1::Deployment created = CreateFirst({"n1", "n2", "n3"});
    EXPECT_TRUE(relay_.AwaitJob(created.job()));
    AddFinal(created, "n1", v1::JOB_OUTCOME_EXITED, 3);
    AddFinal(created, "n2", v1::JOB_OUTCOME_EXITED);
    AddFinal(created, "n3", v1::JOB_OUTCOME_INDETERMINATE);
    return End(created, v1::DEPLOYMENT_STATE_FAILED);
  }

  static v1::PlanDeploymentRequest Wanted(const std::string& retry_of, const std::string& destroys,
                                          bool force = false) {
    v1::PlanDeploymentRequest wanted;
    wanted.set_retry_of(retry_of);
    wanted.set_destroys(destroys);
    wanted.set_force(force);
    return wanted;
  }

  // Returns the request for a plan, as the operator's program creates it.
  v1::CreateDeploymentRequest Successor(const v1::PlanDeploymentRequest& wanted,
                                        const v1::DeploymentPlan& plan) {
    v1::CreateDeploymentRequest source;
    *source.mutable_command() = plan.source();
    v1::Command command = CommandOf(source);
    command.set_job(NewId());
    v1::Command::Deployment& content = *command.mutable_container()->mutable_deployment();
    content.set_deployment(NewId());
    if (!wanted.destroys().empty()) content.set_action("destroy");
    auto request = SignedRequest(std::move(command), {plan.nodes().begin(), plan.nodes().end()});
    request.set_retry_of(wanted.retry_of());
    request.set_destroys(wanted.destroys());
    request.set_force(wanted.force());
    return request;
  }

  absl::StatusOr<v1::Deployment> PlanAndCreate(const v1::PlanDeploymentRequest& wanted) {
    const auto plan = Plan(wanted);
    if (!plan.ok()) return plan.status();
    return Create(Successor(wanted, *plan));
  }

  absl::StatusOr<v1::Deployment> Destroy(const std::string& deployment) {
    return PlanAndCreate(Wanted("", deployment));
  }

 private:
  std::string NewId() {
    return absl::StrCat(absl::Hex(++ids_, absl::kZeroPad16), "00000000000000ff");
  }

  int ids_ = 0;
};

TEST_F(DeploymentRetryTest, RetryRunsTheSameContentWhereItFailed) {
  const v1::Deployment first = CreateFailed();
  const v1::PlanDeploymentRequest wanted = Wanted(first.deployment(), "");
  const auto plan = Plan(wanted);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->nodes_size(), 1);
  EXPECT_EQ(plan->nodes(0), "n1");
  for (const auto& parameter : plan->parameters()) {
    if (parameter.sensitive()) EXPECT_EQ(parameter.value(), "");
  }
  const auto retry = Create(Successor(wanted, *plan));
  ASSERT_TRUE(retry.ok()) << retry.status();
  EXPECT_EQ(retry->retry_of(), first.deployment());
  EXPECT_EQ(retry->targets(), 1);
  ASSERT_EQ(retry->parameters_size(), first.parameters_size());
  EXPECT_EQ(retry->parameters(1).ShortDebugString(), first.parameters(1).ShortDebugString());
  ASSERT_TRUE(relay_.AwaitJob(retry->job()));
  const auto shown = Get(first.deployment());
  ASSERT_EQ(shown->retries_size(), 1);
  EXPECT_EQ(shown->retries(0).deployment(), retry->deployment());
  ASSERT_EQ(shown->nodes_size(), 3);
  EXPECT_EQ(shown->nodes(0).retried_by(), retry->deployment());
  EXPECT_EQ(shown->nodes(0).final().exit_code(), 3);
  EXPECT_EQ(shown->nodes(1).retried_by(), "");
}

// Each node runs the content once at a time, although another deployment of the chain runs it
// there.
TEST_F(DeploymentRetryTest, RetriesOfRetriesAreDestroyedWithTheFirstDeployment) {
  const v1::Deployment first = CreateFailed();
  const auto retry = PlanAndCreate(Wanted(first.deployment(), ""));
  ASSERT_TRUE(retry.ok()) << retry.status();
  ASSERT_TRUE(relay_.AwaitJob(retry->job()));
  AddFinal(*retry, "n1", v1::JOB_OUTCOME_EXITED, 3);
  End(*retry, v1::DEPLOYMENT_STATE_FAILED);
  const auto second = PlanAndCreate(Wanted(retry->deployment(), ""));
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_TRUE(relay_.AwaitJob(second->job()));
  EXPECT_EQ(ReasonOf(Destroy(first.deployment()).status()), "DEPLOYMENT_NOT_ENDED");
  AddFinal(*second, "n1", v1::JOB_OUTCOME_EXITED, 3);
  End(*second, v1::DEPLOYMENT_STATE_FAILED);

  const auto destruction = Destroy(first.deployment());
  ASSERT_TRUE(destruction.ok()) << destruction.status();
  ASSERT_TRUE(relay_.AwaitJob(destruction->job()));
  const auto retry_again = [&] { return PlanAndCreate(Wanted(second->deployment(), "")).status(); };
  EXPECT_EQ(ReasonOf(retry_again()), "NOT_RETRIABLE");
  EXPECT_EQ(ReasonOf(Destroy(second->deployment()).status()), "DEPLOYMENT_NOT_ENDED");
  for (const char* node : {"n1", "n2", "n3"}) {
    AddFinal(*destruction, node, v1::JOB_OUTCOME_EXITED);
  }
  End(*destruction, v1::DEPLOYMENT_STATE_SUCCEEDED);
  EXPECT_EQ(ReasonOf(retry_again()), "NOT_RETRIABLE");
  EXPECT_EQ(ReasonOf(Destroy(second->deployment()).status()), "DEPLOYMENT_DESTROYED");
  EXPECT_EQ(Get(second->deployment())->nodes(0).destroyed_by(), destruction->deployment());
}

// A gateway may pretend to be an operator.
TEST_F(DeploymentRetryTest, GatewayDoesNotGetTheValuesOfSensitiveParameters) {
  const v1::Deployment first = CreateFailed();
  const auto gateway = Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "g1"}));
  const std::string tester = absl::StrCat("spiffe://", fleet_.name(), "/user/tester");
  const auto plan = testing::CallUnary<v1::DeploymentService>(
      gateway, &v1::DeploymentService::Stub::PlanDeployment, Wanted(first.deployment(), ""),
      {{kForwardedIdentity, tester}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->nodes_size(), 1);
  EXPECT_EQ(plan->SerializeAsString().find("s3cret"), std::string::npos);
  const auto direct = Plan(Wanted(first.deployment(), ""));
  EXPECT_NE(direct->source().command().find("s3cret"), std::string::npos);
}

// The check is repeated in the transaction that stores the retry.
TEST_F(DeploymentRetryTest, SecondRetryOfTheSamePlanIsRefused) {
  const v1::Deployment first = CreateFailed();
  const v1::PlanDeploymentRequest wanted = Wanted(first.deployment(), "");
  const auto plan = Plan(wanted);
  const auto request = Successor(wanted, *plan);
  const auto retry = Create(request);
  ASSERT_TRUE(retry.ok()) << retry.status();
  EXPECT_EQ(Create(request)->deployment(), retry->deployment());  // a repeated call
  const absl::Status second = Create(Successor(wanted, *plan)).status();
  EXPECT_EQ(ReasonOf(second), "NOT_RETRIABLE");
  EXPECT_TRUE(absl::StrContains(second.message(), retry->deployment())) << second;
  // The retry itself is tried again.
  ASSERT_TRUE(relay_.AwaitJob(retry->job()));
  AddFinal(*retry, "n1", v1::JOB_OUTCOME_EXITED, 1);
  End(*retry, v1::DEPLOYMENT_STATE_FAILED);
  EXPECT_TRUE(PlanAndCreate(Wanted(retry->deployment(), "")).ok());
}

TEST_F(DeploymentRetryTest, UnknownOutcomeRequiresForceAtTheCreationToo) {
  const v1::Deployment first = CreateFailed();
  v1::PlanDeploymentRequest wanted = Wanted(first.deployment(), "", true);
  wanted.add_nodes("n3");
  const auto plan = Plan(wanted);
  ASSERT_TRUE(plan.ok()) << plan.status();
  v1::PlanDeploymentRequest without = wanted;
  without.set_force(false);
  EXPECT_EQ(ReasonOf(Plan(without).status()), "NOT_RETRIABLE");
  EXPECT_EQ(ReasonOf(Create(Successor(without, *plan)).status()), "NOT_RETRIABLE");
  const auto retry = Create(Successor(wanted, *plan));
  ASSERT_TRUE(retry.ok()) << retry.status();
  EXPECT_TRUE(retry->forced());
}

TEST_F(DeploymentRetryTest, CommandThatTheRelayNeverHadIsTriedAgainOnAllNodes) {
  relay_.AnswerWith({ToGrpc(errors::CommandExpired(absl::Now()))});
  const v1::Deployment first = CreateFirst({"n1", "n2"});
  EXPECT_TRUE(AwaitState(first.deployment(), v1::DEPLOYMENT_STATE_FAILED).never_sent());
  EXPECT_EQ(ReasonOf(Destroy(first.deployment()).status()), "NOTHING_TO_DESTROY");
  const auto retry = PlanAndCreate(Wanted(first.deployment(), ""));
  ASSERT_TRUE(retry.ok()) << retry.status();
  EXPECT_EQ(retry->targets(), 2);
}

TEST_F(DeploymentRetryTest, NodesWithoutAnOutcomeAreUnknown) {
  const v1::Deployment first = CreateFirst({"n1"});
  ASSERT_TRUE(relay_.AwaitJob(first.job()));
  AwaitState(first.deployment(), v1::DEPLOYMENT_STATE_RUNNING);
  relay_.Forget(first.job());
  relay_.CutWatches();
  EXPECT_FALSE(AwaitState(first.deployment(), v1::DEPLOYMENT_STATE_FAILED).never_sent());
  EXPECT_EQ(ReasonOf(Plan(Wanted(first.deployment(), "")).status()), "NOT_RETRIABLE");
}

TEST_F(DeploymentRetryTest, DestructionIsLinkedAndRepeatedAfterItFailed) {
  const v1::Deployment first = CreateFailed();
  const auto failed = Destroy(first.deployment());
  ASSERT_TRUE(failed.ok()) << failed.status();
  EXPECT_EQ(failed->destroys(), first.deployment());
  EXPECT_EQ(failed->action(), "destroy");
  EXPECT_EQ(failed->targets(), 3);
  EXPECT_EQ(ReasonOf(Destroy(first.deployment()).status()), "DEPLOYMENT_NOT_ENDED");
  ASSERT_TRUE(relay_.AwaitJob(failed->job()));
  AddFinal(*failed, "n1", v1::JOB_OUTCOME_EXITED);
  AddFinal(*failed, "n2", v1::JOB_OUTCOME_EXITED, 1);
  AddFinal(*failed, "n3", v1::JOB_OUTCOME_UNREACHABLE);
  End(*failed, v1::DEPLOYMENT_STATE_FAILED);
  EXPECT_EQ(ReasonOf(Plan(Wanted(failed->deployment(), "")).status()), "NOT_RETRIABLE");
  EXPECT_EQ(ReasonOf(Plan(Wanted(first.deployment(), "")).status()), "NOT_RETRIABLE");

  const auto second = Destroy(first.deployment());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->targets(), 2);
  ASSERT_TRUE(relay_.AwaitJob(second->job()));
  AddFinal(*second, "n2", v1::JOB_OUTCOME_EXITED);
  AddFinal(*second, "n3", v1::JOB_OUTCOME_EXITED);
  End(*second, v1::DEPLOYMENT_STATE_SUCCEEDED);
  EXPECT_EQ(ReasonOf(Destroy(first.deployment()).status()), "DEPLOYMENT_DESTROYED");
  const auto shown = Get(first.deployment());
  ASSERT_EQ(shown->destroyed_by_size(), 2);
  EXPECT_EQ(shown->destroyed_by(1).deployment(), second->deployment());
  EXPECT_EQ(shown->destroyed_by(1).state(), v1::DEPLOYMENT_STATE_SUCCEEDED);
}

TEST_F(DeploymentRetryTest, TypeWithoutTheActionIsNotDestroyed) {
  const auto created = Create(Request({"n1"}));
  ASSERT_TRUE(relay_.AwaitJob(created->job()));
  AddFinal(*created, "n1", v1::JOB_OUTCOME_EXITED);
  End(*created, v1::DEPLOYMENT_STATE_SUCCEEDED);
  EXPECT_EQ(ReasonOf(Destroy(created->deployment()).status()), "NO_DESTROY_ACTION");
}

TEST_F(DeploymentRetryTest, FieldsThatDoNotFitAreRefused) {
  const v1::Deployment first = CreateFailed();
  EXPECT_EQ(ReasonOf(Plan(Wanted("none", "")).status()), "DEPLOYMENT_NOT_FOUND");
  EXPECT_EQ(ReasonOf(Plan(Wanted(first.deployment(), first.deployment())).status()),
            "INVALID_PARAMETERS");
  v1::PlanDeploymentRequest wanted = Wanted(first.deployment(), "");
  wanted.add_nodes("/");
  EXPECT_EQ(ReasonOf(Plan(wanted).status()), "INVALID_NAME");
  wanted = Wanted(first.deployment(), "");
  auto request = Successor(wanted, *Plan(wanted));
  request.set_destroys(first.deployment());
  EXPECT_EQ(ReasonOf(Create(request).status()), "INVALID_COMMAND");
  request = Successor(wanted, *Plan(wanted));
  request.set_retry_of("none");
  EXPECT_EQ(ReasonOf(Create(request).status()), "DEPLOYMENT_NOT_FOUND");
  request.clear_retry_of();
  request.set_force(true);
  EXPECT_EQ(ReasonOf(Create(request).status()), "INVALID_COMMAND");
}

}  // namespace
}  // namespace muster
