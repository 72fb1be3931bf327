#include "services/agent/jobs/cancelled_jobs.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

TEST(CancelledJobsTest, OldestJobIsForgottenPastTheLimit) {
  CancelledJobs jobs;
  for (size_t i = 0; i < CancelledJobs::kMaxJobs; ++i) jobs.Add(std::to_string(i));
  jobs.Add("0");
  EXPECT_TRUE(jobs.Contains("0"));
  jobs.Add("last");
  EXPECT_FALSE(jobs.Contains("0"));
  EXPECT_TRUE(jobs.Contains("1"));
  EXPECT_TRUE(jobs.Contains("last"));
}

}  // namespace
}  // namespace muster
