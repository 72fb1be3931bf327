#include "services/agent/jobs/waiting_jobs.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(WaitingJobsTest, NextJobIsTheFirstThatWasAdded) {
  WaitingJobs jobs;
  EXPECT_EQ(jobs.PopNext(), std::nullopt);
  jobs.Add("b", absl::Seconds(3));
  jobs.Add("a", absl::Seconds(1));
  jobs.Add("c", absl::Seconds(2));
  EXPECT_TRUE(jobs.Remove("a"));
  EXPECT_FALSE(jobs.Remove("a"));
  EXPECT_EQ(jobs.size(), 2);
  EXPECT_EQ(jobs.PopNext(), "b");
  EXPECT_EQ(jobs.NextDue(), absl::Seconds(2));
  EXPECT_EQ(jobs.PopNext(), "c");
  EXPECT_EQ(jobs.NextDue(), std::nullopt);
}

TEST(WaitingJobsTest, JobExpiresAtItsDeadline) {
  WaitingJobs jobs;
  jobs.Add("late", absl::Seconds(5));
  jobs.Add("early", absl::Seconds(2));
  EXPECT_EQ(jobs.PopExpired(absl::Seconds(1)), std::nullopt);
  EXPECT_EQ(jobs.PopExpired(absl::Seconds(2)), "early");
  EXPECT_EQ(jobs.PopExpired(absl::Seconds(2)), std::nullopt);
  EXPECT_EQ(jobs.size(), 1);
  EXPECT_EQ(jobs.PopNext(), "late");
}

}  // namespace
}  // namespace muster
