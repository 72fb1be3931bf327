#include "services/jobs/deployment_successor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kActions[] = "actions: [deploy, destroy]\n";

// Returns a request whose command has this content.
v1::CreateDeploymentRequest Request(const std::string& actions, const std::string& action,
                                    const std::string& parameters = R"({"name": "Ada"})") {
  v1::Command command;
  command.mutable_time_limit()->set_seconds(60);
  v1::Command::Deployment& content = *command.mutable_container()->mutable_deployment();
  content.set_deployment(std::string(32, 'd'));
  content.set_action(action);
  content.set_type_document(absl::StrCat(
      "apiVersion: muster/v1\nkind: TemplateType\nname: t\nversion: 1.0.0\n"
      "contract: 1\nimage: a@sha256:",
      std::string(64, 'a'), "\nparameters: {name: {schema: {type: string}}}\n", actions));
  content.set_parameters(parameters);
  v1::CreateDeploymentRequest request;
  request.mutable_command()->set_command(command.SerializeAsString());
  return request;
}

SourceNode Node(const std::string& name, Attempt attempt) {
  SourceNode node;
  node.node = name;
  node.attempt = attempt;
  return node;
}

SourceNode Destroyed(const std::string& name, Attempt destruction) {
  SourceNode node = Node(name, Attempt::kSucceeded);
  node.destroyed_by = "x1";
  node.destruction = destruction;
  return node;
}

// Returns an ended deployment with a node for each attempt: never, failed, unknown, succeeded.
DeploymentSource Source(const std::string& actions = kActions) {
  DeploymentSource source;
  source.message.set_deployment("d1");
  source.message.set_type("t@1.0.0");
  source.message.set_state(v1::DEPLOYMENT_STATE_FAILED);
  source.request = Request(actions, "deploy");
  source.nodes = {Node("failed", Attempt::kFailed), Node("never", Attempt::kNeverStarted),
                  Node("succeeded", Attempt::kSucceeded), Node("unknown", Attempt::kUnknown)};
  return source;
}

TEST(DeploymentSuccessorTest, RetryHasTheNodesOnWhichTheActionRunsNoMore) {
  const auto chosen = NodesToRetry(Source(), {}, false);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_THAT(chosen->nodes, ElementsAre("failed", "never"));
  EXPECT_THAT(chosen->skipped,
              UnorderedElementsAre(
                  Pair("it succeeded", ElementsAre("succeeded")),
                  Pair("its outcome is not known, and it may have run", ElementsAre("unknown"))));
}

TEST(DeploymentSuccessorTest, UnknownOutcomeIsTriedAgainOnlyIfForcedOrIdempotent) {
  EXPECT_EQ(ReasonOf(NodesToRetry(Source(), {"unknown"}, false).status()), "NOT_RETRIABLE");
  EXPECT_THAT(NodesToRetry(Source(), {"unknown"}, true)->nodes, ElementsAre("unknown"));
  const std::string idempotent = "idempotent: [deploy]\n";
  EXPECT_THAT(NodesToRetry(Source(idempotent), {"unknown"}, false)->nodes, ElementsAre("unknown"));
  const std::string other = absl::StrCat(kActions, "idempotent: [destroy]\n");
  EXPECT_EQ(ReasonOf(NodesToRetry(Source(other), {"unknown"}, false).status()), "NOT_RETRIABLE");
}

TEST(DeploymentSuccessorTest, EachNamedNodeMustBePossible) {
  const absl::Status refused =
      NodesToRetry(Source(), {"failed", "succeeded", "absent"}, true).status();
  EXPECT_EQ(ReasonOf(refused), "NOT_RETRIABLE");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("succeeded: it succeeded"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("absent: it is not a node"));
  EXPECT_THAT(NodesToRetry(Source(), {"failed"}, false)->nodes, ElementsAre("failed"));
}

TEST(DeploymentSuccessorTest, NodeIsTriedAgainOnce) {
  DeploymentSource source = Source();
  source.nodes[0].retried_by = "r1";
  EXPECT_THAT(NodesToRetry(source, {}, true)->nodes, ElementsAre("never", "unknown"));
  const absl::Status refused = NodesToRetry(source, {"failed"}, true).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("failed: deployment r1 retries it"));
}

TEST(DeploymentSuccessorTest, DestroyedDeploymentAndDestructionAreNotTriedAgain) {
  DeploymentSource source = Source();
  source.destroyed_by = "x1";
  EXPECT_EQ(ReasonOf(NodesToRetry(source, {}, true).status()), "NOT_RETRIABLE");
  source = Source();
  source.message.set_destroys("d0");
  EXPECT_EQ(ReasonOf(NodesToRetry(source, {}, true).status()), "NOT_RETRIABLE");
}

TEST(DeploymentSuccessorTest, SourceMustHaveEndedAndHaveItsCommand) {
  DeploymentSource source = Source();
  source.message.set_state(v1::DEPLOYMENT_STATE_RUNNING);
  EXPECT_EQ(ReasonOf(NodesToRetry(source, {}, true).status()), "DEPLOYMENT_NOT_ENDED");
  EXPECT_EQ(ReasonOf(NodesToDestroy(source, {}, true).status()), "DEPLOYMENT_NOT_ENDED");
  source = Source();
  source.request.Clear();
  EXPECT_EQ(ReasonOf(NodesToRetry(source, {}, true).status()), "COMMAND_NOT_KEPT");
  EXPECT_EQ(ReasonOf(NodesToDestroy(source, {}, true).status()), "COMMAND_NOT_KEPT");
}

TEST(DeploymentSuccessorTest, DestructionHasTheNodesOnWhichItMayHaveStarted) {
  const auto chosen = NodesToDestroy(Source(), {}, false);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_THAT(chosen->nodes, ElementsAre("failed", "succeeded", "unknown"));
  EXPECT_THAT(chosen->skipped, ElementsAre(Pair("it never started", ElementsAre("never"))));
}

TEST(DeploymentSuccessorTest, DestructionIsRepeatedWhereItFailed) {
  DeploymentSource source = Source();
  source.destroyed_by = "x1";
  source.nodes = {Destroyed("a", Attempt::kSucceeded), Destroyed("b", Attempt::kFailed),
                  Destroyed("c", Attempt::kNeverStarted), Destroyed("d", Attempt::kUnknown)};
  EXPECT_THAT(NodesToDestroy(source, {}, false)->nodes, ElementsAre("b", "c"));
  EXPECT_THAT(NodesToDestroy(source, {}, true)->nodes, ElementsAre("b", "c", "d"));
  source.nodes = {Destroyed("a", Attempt::kSucceeded)};
  EXPECT_EQ(ReasonOf(NodesToDestroy(source, {}, true).status()), "DEPLOYMENT_DESTROYED");
  source.nodes = {Destroyed("d", Attempt::kUnknown)};
  EXPECT_EQ(ReasonOf(NodesToDestroy(source, {}, false).status()), "NOTHING_TO_DESTROY");
}

TEST(DeploymentSuccessorTest, DestructionIsRefusedWithItsReason) {
  EXPECT_EQ(ReasonOf(NodesToDestroy(Source(""), {}, true).status()), "NO_DESTROY_ACTION");
  DeploymentSource source = Source();
  source.nodes = {Node("never", Attempt::kNeverStarted)};
  EXPECT_EQ(ReasonOf(NodesToDestroy(source, {}, true).status()), "NOTHING_TO_DESTROY");
  source = Source();
  source.request = Request(kActions, "destroy");
  EXPECT_EQ(ReasonOf(NodesToDestroy(source, {}, true).status()), "NOTHING_TO_DESTROY");
  source = Source();
  source.open_successor = "r1";
  const absl::Status running = NodesToDestroy(source, {}, true).status();
  EXPECT_EQ(ReasonOf(running), "DEPLOYMENT_NOT_ENDED");
  EXPECT_THAT(std::string(running.message()), HasSubstr("r1"));
}

// One next step for all of them would advise what cannot help.
TEST(DeploymentSuccessorTest, NextStepIsThatOfTheCause) {
  const auto step_of_retry = [](const DeploymentSource& source, std::vector<std::string> nodes) {
    return NextStepOf(NodesToRetry(source, nodes, false).status());
  };
  DeploymentSource source = Source();
  EXPECT_THAT(step_of_retry(source, {"succeeded"}), HasSubstr("muster deploy."));
  EXPECT_THAT(step_of_retry(source, {"unknown"}), HasSubstr("--force"));
  EXPECT_THAT(step_of_retry(source, {"succeeded", "unknown"}), HasSubstr("deployment show d1"));
  EXPECT_THAT(step_of_retry(source, {"absent"}), HasSubstr("deployment show d1"));
  source.nodes[0].retried_by = "r1";
  EXPECT_EQ(step_of_retry(source, {"failed"}), "Retry that one: muster deployment retry r1.");
  EXPECT_THAT(step_of_retry(source, {"failed", "absent"}), HasSubstr("deployment show d1"));
  source.destroyed_by = "x1";
  EXPECT_THAT(step_of_retry(source, {}), HasSubstr("Create a new deployment"));

  const auto step_of_destruction = [](const DeploymentSource& source) {
    return NextStepOf(NodesToDestroy(source, {}, false).status());
  };
  source = Source();
  source.nodes = {Node("never", Attempt::kNeverStarted)};
  EXPECT_THAT(step_of_destruction(source), HasSubstr("created nothing there"));
  source.nodes = {Destroyed("d", Attempt::kUnknown)};
  EXPECT_THAT(step_of_destruction(source), HasSubstr("--force"));
  source.nodes.push_back(Node("never", Attempt::kNeverStarted));
  EXPECT_THAT(step_of_destruction(source), HasSubstr("deployment show d1"));
  source.request = Request(kActions, "destroy");
  EXPECT_THAT(step_of_destruction(source), HasSubstr("--action destroy"));
}

TEST(DeploymentSuccessorTest, PlanHasTheSignedCommandAndTheParameters) {
  v1::PlanDeploymentRequest wanted;
  wanted.set_retry_of("d1");
  const DeploymentSource source = Source();
  const auto plan = PlanSuccessor(source, wanted);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->source().command(), source.request.command().command());
  EXPECT_FALSE(plan->has_deployment());
  EXPECT_THAT(plan->nodes(), ElementsAre("failed", "never"));
  EXPECT_EQ(plan->time_limit().seconds(), 60);
  ASSERT_EQ(plan->parameters_size(), 1);
  EXPECT_EQ(plan->parameters(0).value(), "\"Ada\"");
  ASSERT_EQ(plan->skipped_size(), 2);
  EXPECT_EQ(plan->skipped(0).count(), 1);
}

TEST(DeploymentSuccessorTest, OtherContentIsRefused) {
  const auto reason = [](v1::CreateDeploymentRequest request, bool retries) {
    (retries ? request.mutable_retry_of() : request.mutable_destroys())->assign("d1");
    request.add_nodes("failed");
    return ReasonOf(CheckSuccessor(Source(), request));
  };
  EXPECT_EQ(reason(Request(kActions, "deploy"), true), "");
  EXPECT_EQ(reason(Request(kActions, "destroy"), false), "");
  EXPECT_EQ(reason(Request(kActions, "destroy"), true), "INVALID_COMMAND");
  EXPECT_EQ(reason(Request(kActions, "deploy"), false), "INVALID_COMMAND");
  EXPECT_EQ(reason(Request(kActions, "deploy", R"({"name": "Eve"})"), true), "INVALID_COMMAND");
  EXPECT_EQ(reason(Request("", "deploy"), true), "INVALID_COMMAND");
}

}  // namespace
}  // namespace muster
