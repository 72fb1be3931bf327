#include "services/agent/jobs/job_final.h"

#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

JobPlan PlanWithLimit(bool is_build) {
  JobPlan plan;
  plan.time_limit = absl::Seconds(20);
  plan.image = "registry.example/types/site";
  plan.is_build = is_build;
  return plan;
}

TEST(JobFinalTest, TimeLimitOfABuildNamesTheBuild) {
  EXPECT_EQ(TimeLimitFinal(PlanWithLimit(true), "pushed the image r.example/web").final().detail(),
            "the build ran for longer than 20s, while it pushed the image r.example/web");
  EXPECT_EQ(TimeLimitFinal(PlanWithLimit(false), "").final().detail(),
            "it ran for longer than 20s");
}

TEST(JobFinalTest, LimitThatTheOperatorSetIsNamed) {
  JobPlan plan = PlanWithLimit(false);
  plan.time_limit = absl::Seconds(3.92);
  plan.stated_limit = absl::Seconds(4);
  EXPECT_EQ(TimeLimitFinal(plan, "").final().detail(), "it ran for longer than 4s");
}

TEST(JobFinalTest, TimeLimitBeforeTheStartNamesWhatDidNotStart) {
  const absl::Status failure = absl::UnavailableError("no answer");
  const v1::JobRecord build = TimeLimitBeforeStart(PlanWithLimit(true), failure);
  EXPECT_EQ(build.final().reason(), "TIME_LIMIT");
  EXPECT_EQ(build.final().detail(), "the build did not start within 20s: no answer");
  EXPECT_EQ(TimeLimitBeforeStart(PlanWithLimit(false), failure).final().detail(),
            "its container did not start within 20s: no answer");
}

}  // namespace
}  // namespace muster
