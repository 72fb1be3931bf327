#include "services/agent/jobs/job_plan.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

// The time limit with these seconds of the command, of its rule, and of its job.
absl::Duration TimeLimit(int command_limit, int rule_limit, int end_within) {
  Verdict verdict;
  verdict.command.mutable_time_limit()->set_seconds(command_limit);
  verdict.rule.time_limit = absl::Seconds(rule_limit);
  v1::JobCommand command;
  command.mutable_end_within()->set_seconds(end_within);
  return MakeJobPlan(command, verdict).time_limit;
}

TEST(JobPlanTest, SmallestOfTheThreeTimeLimitsApplies) {
  EXPECT_EQ(TimeLimit(1, 2, 3), absl::Seconds(1));
  EXPECT_EQ(TimeLimit(3, 1, 2), absl::Seconds(1));
  EXPECT_EQ(TimeLimit(2, 3, 1), absl::Seconds(1));
}

TEST(JobPlanTest, PlanIsOfTheRuleWithTheVariablesOfTheCommand) {
  Verdict verdict;
  verdict.rule.argv = {"/bin/echo", "x"};
  verdict.rule.user = "deploy";
  verdict.rule.directory = "/srv";
  verdict.rule.max_output = 7;
  v1::Command::Variable& variable = *verdict.command.add_environment();
  variable.set_name("LANG");
  variable.set_value("C");
  verdict.command.set_discard_output(true);
  const JobPlan plan = MakeJobPlan({}, verdict);
  EXPECT_EQ(plan.argv, verdict.rule.argv);
  EXPECT_EQ(plan.user, "deploy");
  EXPECT_EQ(plan.directory, "/srv");
  EXPECT_EQ(plan.max_output, 7);
  EXPECT_EQ(plan.environment, std::vector<std::string>{"LANG=C"});
  EXPECT_FALSE(plan.keep_output);
}

TEST(JobPlanTest, DeploymentHasItsVariables) {
  Verdict verdict;
  v1::Command::Deployment& deployment = *verdict.command.mutable_container()->mutable_deployment();
  deployment.set_deployment("d1");
  deployment.set_action("destroy");
  const JobPlan plan = MakeJobPlan({}, verdict);
  EXPECT_EQ(plan.deployment, "d1");
  EXPECT_EQ(plan.environment,
            (std::vector<std::string>{"MUSTER_DEPLOYMENT=d1", "MUSTER_ACTION=destroy",
                                      "MUSTER_CONTRACT=1"}));
}

TEST(JobPlanTest, TargetIsTheOneOfThisNode) {
  v1::JobCommand command;
  for (const char* node : {"n1", "n2"}) command.add_targets()->set_node(node);
  EXPECT_EQ(TargetFor(command, "n2").node(), "n2");
}

}  // namespace
}  // namespace muster
