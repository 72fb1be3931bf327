#include "cli/output/job_next_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string StepAfter(v1::JobOutcome outcome, const std::string& reason, bool in_container = true) {
  v1::JobRecord::Final final;
  final.set_outcome(outcome);
  final.set_reason(reason);
  if (outcome == v1::JOB_OUTCOME_EXITED) final.set_exit_code(1);
  return NextStepAfter(final, in_container);
}

TEST(JobNextStepTest, EachFailureHasANextStep) {
  for (int i = v1::JobOutcome_MIN + 1; i <= v1::JobOutcome_MAX; ++i) {
    const auto outcome = static_cast<v1::JobOutcome>(i);
    const bool has_step = outcome != v1::JOB_OUTCOME_CANCELLED;
    EXPECT_EQ(!StepAfter(outcome, "").empty(), has_step) << v1::JobOutcome_Name(outcome);
  }
  EXPECT_THAT(StepAfter(v1::JOB_OUTCOME_UNREACHABLE, ""), HasSubstr("muster node show"));
  EXPECT_THAT(StepAfter(v1::JOB_OUTCOME_EXITED, ""), HasSubstr("Read the output"));
  EXPECT_THAT(StepAfter(v1::JOB_OUTCOME_UNKNOWN, ""), HasSubstr("muster node join"));
}

TEST(JobNextStepTest, ReasonDecidesBeforeTheOutcome) {
  EXPECT_THAT(StepAfter(v1::JOB_OUTCOME_FAILED, "OUTPUTS_INVALID"), HasSubstr("/state/outputs"));
  EXPECT_THAT(StepAfter(v1::JOB_OUTCOME_FAILED, "STATE_TOO_LARGE"), HasSubstr("/state"));
  EXPECT_THAT(StepAfter(v1::JOB_OUTCOME_FAILED, "IMAGE_NOT_FOUND"), HasSubstr("Pull the image"));
  EXPECT_THAT(StepAfter(v1::JOB_OUTCOME_FAILED, "IMAGE_PULL_FAILED"), HasSubstr("the registry"));
  EXPECT_THAT(StepAfter(v1::JOB_OUTCOME_TIMED_OUT, "TIME_LIMIT"), HasSubstr("--deadline"));
  EXPECT_THAT(StepAfter(v1::JOB_OUTCOME_EXITED, "OUT_OF_MEMORY"), HasSubstr("limits.memory"));
  EXPECT_THAT(StepAfter(v1::JOB_OUTCOME_LOST, "AGENT_DIED"), HasSubstr("log of the agent"));
  EXPECT_THAT(StepAfter(v1::JOB_OUTCOME_EXPIRED, "COMMAND_EXPIRED"), HasSubstr("Submit it again"));
}

TEST(JobNextStepTest, RefusedContainerPointsToTheLineOfThePolicy) {
  EXPECT_THAT(StepAfter(v1::JOB_OUTCOME_REFUSED, "POLICY_REFUSED", true),
              HasSubstr("the message names the lines"));
  EXPECT_THAT(StepAfter(v1::JOB_OUTCOME_REFUSED, "POLICY_REFUSED", false),
              HasSubstr("Add a rule that admits the command"));
}

TEST(NextStepsTest, KnownNamesReplaceThePlaceholders) {
  for (int i = v1::JobOutcome_MIN + 1; i <= v1::JobOutcome_MAX; ++i) {
    v1::JobRecord::Final final;
    final.set_outcome(static_cast<v1::JobOutcome>(i));
    final.set_exit_code(1);
    NextSteps steps;
    steps.Add("n1", final, true);
    for (const std::string& text : steps.Texts("j1", "d1")) {
      for (const char* placeholder : {"NAME", "JOB", "DEPLOYMENT"}) {
        EXPECT_THAT(text, Not(HasSubstr(placeholder)));
      }
    }
  }
}

TEST(NextStepsTest, StepNamesTheJobOrTheDeploymentAndTheOnlyNode) {
  v1::JobRecord::Final final;
  final.set_outcome(v1::JOB_OUTCOME_EXITED);
  final.set_exit_code(1);
  NextSteps steps;
  steps.Add("n1", final, true);
  EXPECT_THAT(steps.Texts("j1"), ElementsAre(HasSubstr(": muster job logs j1 --node n1.")));
  EXPECT_THAT(steps.Texts("j1", "d1"),
              ElementsAre(HasSubstr(": muster deployment logs d1 --node n1.")));
  steps.Add("n1", final, true);
  EXPECT_THAT(steps.Texts("j1"), ElementsAre(HasSubstr("--node n1")));
  steps.Add("n2", final, true);
  EXPECT_THAT(steps.Texts("j1"), ElementsAre(HasSubstr(": muster job logs j1 --node NAME.")));
  final.set_outcome(v1::JOB_OUTCOME_FAILED);
  final.set_reason("SECRET_UNAVAILABLE");
  NextSteps retry;
  retry.Add("n1", final, true);
  EXPECT_THAT(retry.Texts("j1", "d1"), ElementsAre(HasSubstr("muster deployment retry d1.")));
}

TEST(JobNextStepTest, SuccessWithARemarkHasNone) {
  v1::JobRecord::Final final;
  final.set_outcome(v1::JOB_OUTCOME_EXITED);
  final.set_reason("OUT_OF_MEMORY");
  EXPECT_THAT(NextStepAfter(final, true), IsEmpty());
}

}  // namespace
}  // namespace muster::cli
