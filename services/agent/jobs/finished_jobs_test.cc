#include "services/agent/jobs/finished_jobs.h"

#include <cerrno>

#include "gtest/gtest.h"
#include "services/common/base/simulated_disk.h"

namespace muster {
namespace {

class FinishedJobsTest : public ::testing::Test {
 protected:
  FinishedJobsTest() {
    for (const char* folder : {"/jobs", "/jobs/a", "/jobs/b"}) {
      EXPECT_TRUE(disk_.MakeFolder(folder).ok());
    }
    jobs_.Add("a", now_);
    jobs_.Add("b", now_ + absl::Hours(1));
  }

  bool HasFolder(const std::string& job) { return disk_.Stat("/jobs/" + job).ok(); }

  const absl::Time now_ = absl::FromUnixSeconds(1'750'000'000);
  SimulatedDisk disk_;
  FinishedJobs jobs_{disk_, "/jobs"};
};

TEST_F(FinishedJobsTest, JobIsForgottenAnHourAfterItsCommandExpires) {
  jobs_.Forget(now_ + absl::Hours(1));
  EXPECT_TRUE(jobs_.Contains("a"));
  EXPECT_TRUE(HasFolder("a"));
  jobs_.Forget(now_ + absl::Hours(2));
  EXPECT_FALSE(jobs_.Contains("a"));
  EXPECT_FALSE(HasFolder("a"));
  EXPECT_TRUE(jobs_.Contains("b"));
  EXPECT_TRUE(HasFolder("b"));
  EXPECT_EQ(jobs_.size(), 1);
}

TEST_F(FinishedJobsTest, JobWithoutAKnownEndIsNeverForgotten) {
  jobs_.Add("a", absl::InfiniteFuture());
  jobs_.Forget(now_ + absl::Hours(24 * 365));
  EXPECT_TRUE(jobs_.Contains("a"));
  EXPECT_FALSE(jobs_.Contains("b"));
}

TEST_F(FinishedJobsTest, FolderThatCannotBeRemovedIsTriedAgain) {
  disk_.FailAt(SimulatedDisk::Call::kRemove, 1, EIO);
  jobs_.Forget(now_ + absl::Hours(2));
  EXPECT_TRUE(jobs_.Contains("a"));
  jobs_.Forget(now_ + absl::Hours(2));
  EXPECT_FALSE(jobs_.Contains("a"));
  EXPECT_FALSE(HasFolder("a"));
}

}  // namespace
}  // namespace muster
