#include "cli/output/deployment_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::Deployment Running(int targets) {
  v1::Deployment deployment;
  deployment.set_deployment(std::string(32, 'd'));
  deployment.set_type("greet@1.0.0");
  deployment.set_state(v1::DEPLOYMENT_STATE_RUNNING);
  deployment.set_targets(targets);
  return deployment;
}

v1::JobRecord::Final& AddEnded(v1::Deployment& deployment, const std::string& node,
                               v1::JobOutcome outcome, const std::string& reason = "",
                               const std::string& detail = "") {
  v1::DeploymentNode& added = *deployment.add_nodes();
  added.set_node(node);
  added.mutable_final()->set_outcome(outcome);
  added.mutable_final()->set_reason(reason);
  added.mutable_final()->set_detail(detail);
  return *added.mutable_final();
}

TEST(DeploymentViewTest, NodesWithoutARecordAreCountedWithTheReasons) {
  v1::Deployment deployment = Running(3);
  deployment.add_nodes()->set_node("n1");
  deployment.mutable_nodes(0)->mutable_start_time();
  EXPECT_EQ(WithoutRecord(deployment), 2);
  EXPECT_THAT(DeploymentTable(deployment, {"relay r1 is not attached any more"}, 80),
              HasSubstr("node        n1: running\n"
                        "waiting     nothing received yet from 2 of 3 nodes\n"
                        "            relay r1 is not attached any more\n"));
  deployment.set_state(v1::DEPLOYMENT_STATE_FAILED);
  EXPECT_THAT(DeploymentTable(deployment, {}, 80),
              HasSubstr("n1: no outcome: the root relay has none of this node\n"
                        "waiting     no record of 2 of 3 nodes\n"));
  EXPECT_THAT(DeploymentTable(Running(0), {}, 80), Not(HasSubstr("waiting")));
}

TEST(DeploymentViewTest, TenNodesWithoutARecordAreNamed) {
  v1::Deployment deployment = Running(12);
  for (int i = 10; i < 20; ++i) deployment.add_silent_nodes(absl::StrCat("n", i));
  EXPECT_THAT(DeploymentTable(deployment, {}, 0),
              HasSubstr("nothing received yet from 12 of 12 nodes: n10, n11, n12, n13, n14, n15, "
                        "n16, n17, n18, n19 and 2 more\n"));
}

TEST(DeploymentViewTest, ListHasNoFieldsThatAreNotListed) {
  const Json whole = ToJson(Running(1));
  const Json listed = ListedJson(Running(1));
  for (const char* field : {"parameters", "files", "nodes", "retries", "destroyed_by"}) {
    EXPECT_TRUE(whole.contains(field)) << field;
    EXPECT_FALSE(listed.contains(field)) << field;
  }
  EXPECT_EQ(listed["targets"], 1);
}

TEST(DeploymentViewTest, OutcomesHaveOneWordEach) {
  v1::Deployment deployment = Running(3);
  AddEnded(deployment, "n1", v1::JOB_OUTCOME_TIMED_OUT);
  AddEnded(deployment, "n2", v1::JOB_OUTCOME_UNKNOWN);
  AddEnded(deployment, "n3", v1::JOB_OUTCOME_EXITED);
  const std::string table = DeploymentTable(deployment, {}, 0);
  for (const char* line : {"n1: timed out\n", "n2: unknown node\n", "n3: succeeded\n"}) {
    EXPECT_THAT(table, HasSubstr(line));
  }
}

TEST(DeploymentViewTest, FailureIsOneSentenceWithANextStep) {
  v1::Deployment deployment = Running(3);
  AddEnded(deployment, "n1", v1::JOB_OUTCOME_FAILED, "OUTPUTS_INVALID", "text: is missing");
  AddEnded(deployment, "n2", v1::JOB_OUTCOME_EXITED).set_exit_code(3);
  AddEnded(deployment, "n3", v1::JOB_OUTCOME_FAILED, "OUTPUTS_INVALID", "text: is missing");
  const std::string table = DeploymentTable(deployment, {}, 0);
  EXPECT_THAT(table, HasSubstr("n1: failed: OUTPUTS_INVALID: text: is missing\n"));
  EXPECT_THAT(table, HasSubstr("n2: failed: exit code 3\n"));
  const size_t step = table.find("next        Correct the program in the image");
  EXPECT_NE(step, std::string::npos) << table;
  const size_t other = table.find("next        Read the output of the command");
  EXPECT_NE(other, std::string::npos) << table;
  EXPECT_EQ(table.find("next ", std::max(step, other) + 1), std::string::npos) << table;
}

TEST(DeploymentViewTest, FailedNodesAreShownFirst) {
  v1::Deployment deployment = Running(100);
  for (int i = 100; i < 199; ++i) {
    AddEnded(deployment, absl::StrCat("n", i), v1::JOB_OUTCOME_EXITED);
  }
  AddEnded(deployment, "n199", v1::JOB_OUTCOME_UNREACHABLE);
  const std::string table = DeploymentTable(deployment, {}, 0);
  EXPECT_LT(table.find("n199: unreachable\n"), table.find("n100: succeeded\n")) << table;
  EXPECT_THAT(table, HasSubstr("and 50 more nodes: --json\n"));
}

TEST(DeploymentViewTest, RetriesAndDestructionsNameEachOther) {
  v1::Deployment deployment = Running(1);
  deployment.set_state(v1::DEPLOYMENT_STATE_FAILED);
  deployment.set_retry_of("d0");
  deployment.set_never_sent(true);
  deployment.add_nodes()->set_node("n1");
  deployment.mutable_nodes(0)->set_retried_by("r1");
  const auto relate = [](const char* id, v1::DeploymentState state, v1::RelatedDeployment* one) {
    one->set_deployment(id);
    one->set_state(state);
  };
  relate("r1", v1::DEPLOYMENT_STATE_RUNNING, deployment.add_retries());
  relate("x1", v1::DEPLOYMENT_STATE_FAILED, deployment.add_destroyed_by());
  relate("x2", v1::DEPLOYMENT_STATE_SUCCEEDED, deployment.add_destroyed_by());
  const std::string table = DeploymentTable(deployment, {}, 0);
  for (const char* row :
       {"retry of      d0\n", "retried by    r1: running\n", "destruction   x1: failed\n",
        "destroyed by  x2: succeeded\n", "n1: not started\n"}) {
    EXPECT_THAT(table, HasSubstr(row));
  }
  const Json json = ToJson(deployment);
  EXPECT_EQ(json["retry_of"], "d0");
  EXPECT_EQ(json["retries"][0]["deployment"], "r1");
  EXPECT_EQ(json["destroyed_by"][1]["state"], "succeeded");
  EXPECT_EQ(json["nodes"][0]["retried_by"], "r1");
}

TEST(DeploymentViewTest, ContentOfASuccessorIsShownBeforeItIsSigned) {
  v1::Deployment content;
  content.set_destroys("d0");
  content.set_type("greet@1.0.0");
  content.set_action("destroy");
  v1::DeploymentParameter& parameter = *content.add_parameters();
  parameter.set_name("token");
  parameter.set_sensitive(true);
  parameter.set_source("deployment");
  auto& secret = *content.add_secrets();
  secret.set_name("db");
  secret.set_secret("prod/db");
  secret.set_version(3);
  EXPECT_EQ(ToJson(content)["secrets"][0]["version"], 3);
  v1::DeploymentPlan plan;
  for (int i = 10; i < 22; ++i) plan.add_nodes(absl::StrCat("n", i));
  v1::SkippedNodes& skipped = *plan.add_skipped();
  skipped.set_reason("it never started");
  skipped.add_nodes("n9");
  skipped.set_count(1);
  const std::string table = SuccessorTable(content, "spiffe://f/user/alice", plan, 0);
  for (const char* row :
       {"DESTROYS   d0\n", "action     destroy\n", "parameter  token = (sensitive)  (deployment)\n",
        "secret     db = prod/db@3\n", "n19 and 2 more\n", "left out   n9: it never started\n"}) {
    EXPECT_THAT(table, HasSubstr(row));
  }
}

TEST(DeploymentViewTest, NumbersOfJsonKeepTheirText) {
  v1::Deployment deployment = Running(1);
  v1::DeploymentParameter& parameter = *deployment.add_parameters();
  parameter.set_name("big");
  parameter.set_value("123456789012345678901234567890");
  AddEnded(deployment, "n1", v1::JOB_OUTCOME_EXITED);
  auto& output = *deployment.mutable_nodes(0)->mutable_outputs()->add_outputs();
  output.set_name("price");
  output.set_value("{\"eur\":0.10}");
  const std::string json = Dump(ToJson(deployment));
  EXPECT_THAT(json, HasSubstr("\"value\":123456789012345678901234567890,"));
  EXPECT_THAT(json, HasSubstr("\"price\":{\"eur\":0.10}"));
}

}  // namespace
}  // namespace muster::cli
