#include "services/jobs/deployment_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

ResolvedDeployment Deployment() {
  v1::Command::Deployment content;
  content.set_action("deploy");
  content.set_type_document(
      absl::StrCat("apiVersion: muster/v1\nkind: TemplateType\nname: t\nversion: 1.0.0\n"
                   "contract: 1\nimage: a@sha256:",
                   std::string(64, 'a'), "\noutputs: {url: {schema: {type: string}}}\n"));
  return ResolveDeployment(content).value();
}

v1::JobRecord Outputs(const std::vector<std::pair<std::string, std::string>>& values) {
  v1::JobRecord record;
  record.mutable_outputs();
  for (const auto& [name, value] : values) {
    auto& output = *record.mutable_outputs()->add_outputs();
    output.set_name(name);
    output.set_value(value);
  }
  return record;
}

v1::JobRecord Final(int exit_code, bool verified) {
  v1::JobRecord record;
  record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
  record.mutable_final()->set_exit_code(exit_code);
  record.mutable_final()->set_records_verified(verified);
  return record;
}

v1::DeploymentNode After(const std::vector<v1::JobRecord>& records) {
  v1::DeploymentNode node;
  for (const v1::JobRecord& record : records) ApplyRecord(record, &node);
  CheckOutputs(Deployment(), &node);
  return node;
}

TEST(DeploymentNodeTest, AdmittedOutputsAreKept) {
  const auto node = After({Outputs({{"url", "\"u\""}}), Final(0, true)});
  EXPECT_TRUE(HasSucceeded(node));
  ASSERT_EQ(node.outputs().outputs_size(), 1);
  EXPECT_TRUE(HasSucceeded(After({Final(0, true)}))) << "none is required";
}

TEST(DeploymentNodeTest, NodeFailsWithOutputsThatTheDocumentsDoNotAdmit) {
  const std::vector<std::pair<std::string, std::string>> all = {
      {"zz", "7"}, {"url", "5"}, {"url", "not json"}};
  for (const auto& output : all) {
    const auto node = After({Outputs({output}), Final(0, true)});
    EXPECT_FALSE(HasSucceeded(node)) << output.second;
    EXPECT_EQ(node.final().reason(), "OUTPUTS_INVALID");
    EXPECT_THAT(node.final().detail(), HasSubstr(output.first));
    EXPECT_FALSE(node.has_outputs());
  }
}

TEST(DeploymentNodeTest, FirstOutputsCount) {
  const auto node =
      After({Outputs({{"url", "\"a\""}}), Outputs({{"url", "\"b\""}}), Final(0, true)});
  EXPECT_EQ(node.outputs().outputs(0).value(), "\"a\"");
}

TEST(DeploymentNodeTest, OutputsOfARelayAreDroppedAndNotChecked) {
  const auto node = After({Outputs({{"zz", "7"}}), Final(0, false)});
  EXPECT_TRUE(HasSucceeded(node));
  EXPECT_FALSE(node.has_outputs());
}

// The root relay makes final records without a reason and without a signature.
TEST(DeploymentNodeTest, AttemptFollowsFromTheOutcome) {
  const auto attempt = [](v1::JobOutcome outcome, const std::string& reason, bool started,
                          bool verified, int exit_code = 0) {
    v1::DeploymentNode node;
    if (started) node.mutable_start_time()->set_seconds(1);
    node.mutable_final()->set_outcome(outcome);
    node.mutable_final()->set_reason(reason);
    node.mutable_final()->set_exit_code(exit_code);
    node.mutable_final()->set_records_verified(verified);
    return AttemptOf(node);
  };
  EXPECT_EQ(AttemptOf({}), Attempt::kUnknown);
  EXPECT_EQ(attempt(v1::JOB_OUTCOME_EXITED, "", true, true), Attempt::kSucceeded);
  EXPECT_EQ(attempt(v1::JOB_OUTCOME_EXITED, "OUT_OF_MEMORY", true, true, 137), Attempt::kFailed);
  EXPECT_EQ(attempt(v1::JOB_OUTCOME_TIMED_OUT, "TIME_LIMIT", true, true), Attempt::kFailed);
  EXPECT_EQ(attempt(v1::JOB_OUTCOME_TIMED_OUT, "", true, false), Attempt::kUnknown);
  EXPECT_EQ(attempt(v1::JOB_OUTCOME_INDETERMINATE, "", false, false), Attempt::kUnknown);
  EXPECT_EQ(attempt(v1::JOB_OUTCOME_LOST, "MACHINE_RESTARTED", true, true), Attempt::kFailed);
  EXPECT_EQ(attempt(v1::JOB_OUTCOME_LOST, "DOCKER_UNREACHABLE", true, true), Attempt::kUnknown);
  EXPECT_EQ(attempt(v1::JOB_OUTCOME_LOST, "RECORDS_DAMAGED", true, true), Attempt::kUnknown);
  for (const auto outcome : {v1::JOB_OUTCOME_UNKNOWN, v1::JOB_OUTCOME_UNREACHABLE,
                             v1::JOB_OUTCOME_EXPIRED, v1::JOB_OUTCOME_REFUSED}) {
    EXPECT_EQ(attempt(outcome, "", false, false), Attempt::kNeverStarted);
  }
  for (const auto outcome : {v1::JOB_OUTCOME_CANCELLED, v1::JOB_OUTCOME_FAILED}) {
    EXPECT_EQ(attempt(outcome, "", true, true), Attempt::kFailed);
    EXPECT_EQ(attempt(outcome, "", false, true), Attempt::kNeverStarted);
    EXPECT_EQ(attempt(outcome, "", false, false), Attempt::kFailed);  // a record may be missing
  }
}

// The root relay gave up a node that had sent its outputs. The node has signed them all the same.
TEST(DeploymentNodeTest, OutputsAndWorkspaceStayWhileTheNodeMayReportLater) {
  v1::JobRecord workspace;
  workspace.mutable_workspace()->set_workspace("w");
  v1::JobRecord given_up;
  given_up.mutable_final()->set_outcome(v1::JOB_OUTCOME_TIMED_OUT);
  const v1::JobRecord outputs = Outputs({{"url", "\"u\""}});
  const auto late = After({outputs, workspace, given_up, Final(0, true)});
  EXPECT_TRUE(HasSucceeded(late)) << late.final().detail();
  EXPECT_EQ(late.outputs().outputs_size(), 1);
  EXPECT_EQ(late.workspace().workspace(), "w");
  EXPECT_EQ(late.earlier().outcome(), v1::JOB_OUTCOME_TIMED_OUT);
  const auto unsigned_one = After({outputs, workspace, given_up, Final(0, false)});
  EXPECT_FALSE(unsigned_one.has_outputs());
  EXPECT_FALSE(unsigned_one.has_workspace());
  EXPECT_FALSE(After({outputs, given_up, Final(1, true)}).has_outputs());
}

TEST(DeploymentNodeTest, OutputsOfAFailedContainerAreDropped) {
  const auto node = After({Outputs({{"zz", "7"}}), Final(1, true)});
  EXPECT_EQ(node.final().reason(), "");
  EXPECT_FALSE(node.has_outputs());
}

}  // namespace
}  // namespace muster
