#include "services/agent/jobs/finished_jobs.h"

#include <cerrno>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/simulated_disk.h"

namespace muster {
namespace {

class FinishedJobsTest : public ::testing::Test {
 protected:
  FinishedJobsTest() {
    for (const char* folder : {"/jobs", "/jobs/a", "/jobs/b"}) {
      EXPECT_TRUE(disk_.MakeFolder(folder).ok());
    }
    jobs_.Add("a", clock_.Now(), /*started=*/true);
    jobs_.Add("b", clock_.Now() + absl::Hours(26), /*started=*/false);
  }

  bool HasFolder(const std::string& job) { return disk_.Stat("/jobs/" + job).ok(); }

  void ForgetAfter(absl::Duration time) {
    clock_.Advance(time);
    jobs_.Forget();
  }

  FakeClock clock_;
  SimulatedDisk disk_;
  FinishedJobs jobs_{disk_, "/jobs", clock_};
};

TEST_F(FinishedJobsTest, JobIsForgottenAfterADayButNotBeforeItsCommandExpires) {
  EXPECT_TRUE(jobs_.HasStarted("a"));
  EXPECT_FALSE(jobs_.HasStarted("b"));
  ForgetAfter(absl::Hours(25));
  EXPECT_TRUE(jobs_.Contains("a"));
  EXPECT_TRUE(HasFolder("a"));
  ForgetAfter(absl::Minutes(6));
  EXPECT_FALSE(jobs_.Contains("a"));
  EXPECT_FALSE(HasFolder("a"));
  EXPECT_TRUE(jobs_.Contains("b"));
  EXPECT_TRUE(HasFolder("b"));
  EXPECT_EQ(jobs_.size(), 1);
}

TEST_F(FinishedJobsTest, UnreadableJobIsNeverForgotten) {
  jobs_.AddUnreadable("a");
  ForgetAfter(absl::Hours(24 * 365));
  EXPECT_TRUE(jobs_.Contains("a"));
  EXPECT_TRUE(jobs_.IsUnreadable("a"));
  EXPECT_FALSE(jobs_.Contains("b"));
}

// A forgotten job could run again after the clock is right again.
TEST_F(FinishedJobsTest, JumpOfTheClockForgetsNoJob) {
  const absl::Time right = clock_.Now();
  clock_.JumpWall(right + absl::Hours(24 * 365));
  ForgetAfter(absl::Minutes(1));
  EXPECT_TRUE(jobs_.Contains("a"));
  EXPECT_TRUE(HasFolder("a"));
  clock_.JumpWall(right + absl::Minutes(1));
  ForgetAfter(absl::Hours(26));
  EXPECT_FALSE(jobs_.Contains("a"));
  EXPECT_TRUE(jobs_.Contains("b"));
}

TEST_F(FinishedJobsTest, JobOfAWrongClockIsForgottenADayAfterTheCorrection) {
  const absl::Time right = clock_.Now();
  clock_.JumpWall(absl::UnixEpoch());
  jobs_.Add("a", right, /*started=*/true);
  clock_.JumpWall(right);
  ForgetAfter(absl::Hours(24));
  EXPECT_TRUE(jobs_.Contains("a"));
  ForgetAfter(absl::Hours(2));
  EXPECT_FALSE(jobs_.Contains("a"));
}

// The clock is corrected some time after the start.
TEST_F(FinishedJobsTest, StartWithAWrongClockForgetsNoJob) {
  const absl::Time right = clock_.Now();
  clock_.JumpWall(right + absl::Hours(26));
  jobs_.Add("a", right, /*started=*/true);
  ForgetAfter(absl::Hours(2));
  EXPECT_TRUE(jobs_.Contains("a"));
  EXPECT_TRUE(HasFolder("a"));
  clock_.JumpWall(right + absl::Hours(2));
  ForgetAfter(absl::Hours(24));
  EXPECT_FALSE(jobs_.Contains("a"));
  EXPECT_FALSE(HasFolder("a"));
}

TEST_F(FinishedJobsTest, JobIsForgottenBeforeALaterCommand) {
  const absl::Time right = clock_.Now();
  jobs_.ForgetBefore(right + absl::Hours(1));
  EXPECT_TRUE(jobs_.Contains("a"));
  jobs_.ForgetBefore(right + absl::Minutes(66));
  EXPECT_FALSE(jobs_.Contains("a"));
  EXPECT_FALSE(HasFolder("a"));
  EXPECT_TRUE(jobs_.Contains("b"));
}

TEST_F(FinishedJobsTest, FolderThatCannotBeRemovedIsTriedAgain) {
  disk_.FailAt(SimulatedDisk::Call::kRemove, 1, EIO);
  ForgetAfter(absl::Hours(26));
  EXPECT_TRUE(jobs_.Contains("a"));
  ForgetAfter(absl::ZeroDuration());
  EXPECT_FALSE(jobs_.Contains("a"));
  EXPECT_FALSE(HasFolder("a"));
}

TEST_F(FinishedJobsTest, FolderIsPreparedForItsRemoval) {
  std::vector<std::string> prepared;
  FinishedJobs jobs(disk_, "/jobs", clock_, [&](const std::string& folder) {
    EXPECT_TRUE(disk_.Stat(folder).ok());
    prepared.push_back(folder);
  });
  jobs.Add("a", clock_.Now(), /*started=*/true);
  clock_.Advance(absl::Hours(26));
  jobs.Forget();
  EXPECT_EQ(prepared, std::vector<std::string>{"/jobs/a"});
  EXPECT_FALSE(HasFolder("a"));
}

}  // namespace
}  // namespace muster
