#include "services/agent/jobs/cancelled_jobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/simulated_disk.h"

namespace muster {
namespace {

constexpr char kPath[] = "/cancelled-jobs";
constexpr size_t kMaxJobs = 5;

class CancelledJobsTest : public ::testing::Test {
 protected:
  CancelledJobsTest() { Open(); }

  void Open() {
    jobs_.reset();
    auto opened = CancelledJobs::Open(disk_, kPath, clock_, kMaxJobs);
    ASSERT_TRUE(opened.ok()) << opened.status();
    jobs_ = *std::move(opened);
  }

  // The agent is killed and starts again.
  void Restart() {
    jobs_.reset();
    disk_.Restart();
    Open();
  }

  FakeClock clock_;
  SimulatedDisk disk_;
  std::unique_ptr<CancelledJobs> jobs_;
};

TEST_F(CancelledJobsTest, JobIsKnownAfterAKill) {
  EXPECT_FALSE(jobs_->Contains("a"));
  EXPECT_TRUE(jobs_->Add("a").ok());
  EXPECT_TRUE(jobs_->Contains("a"));
  Restart();
  EXPECT_TRUE(jobs_->Contains("a"));
  EXPECT_FALSE(jobs_->Contains("b"));
}

// Also while the journal is replaced.
TEST_F(CancelledJobsTest, StoredJobIsKnownAfterALossOfPowerAtAnyCall) {
  bool finished = false;
  for (int call = 1; !finished; ++call) {
    SCOPED_TRACE(call);
    SimulatedDisk disk;
    auto jobs = CancelledJobs::Open(disk, kPath, clock_, kMaxJobs).value();
    disk.PowerOffAt(call);
    std::vector<std::string> stored;
    for (size_t i = 0; i < 4 * kMaxJobs; ++i) {
      stored.push_back(std::to_string(i));
      if (jobs->Add(stored.back()).ok()) continue;
      stored.pop_back();
      break;
    }
    finished = !disk.powered_off();
    jobs.reset();
    disk.Crash(static_cast<uint64_t>(call));
    jobs = CancelledJobs::Open(disk, kPath, clock_, kMaxJobs).value();
    // The job that was not stored may have taken the place of the oldest one.
    for (size_t i = stored.size() - std::min(stored.size(), kMaxJobs - 1); i < stored.size(); ++i) {
      EXPECT_TRUE(jobs->Contains(stored[i])) << stored[i];
    }
  }
}

TEST_F(CancelledJobsTest, OldestJobIsDroppedPastTheLimit) {
  for (size_t i = 0; i < kMaxJobs; ++i) {
    ASSERT_TRUE(jobs_->Add(std::to_string(i)).ok());
  }
  EXPECT_TRUE(jobs_->Add("0").ok());
  EXPECT_TRUE(jobs_->Contains("0"));
  EXPECT_TRUE(jobs_->Add("last").ok());
  for (int restarts = 0; restarts < 2; ++restarts) {
    EXPECT_FALSE(jobs_->Contains("0"));
    EXPECT_TRUE(jobs_->Contains("1"));
    EXPECT_TRUE(jobs_->Contains("last"));
    Restart();
  }
}

TEST_F(CancelledJobsTest, JournalDoesNotGrow) {
  for (size_t i = 0; i < 100 * kMaxJobs; ++i) {
    ASSERT_TRUE(jobs_->Add(absl::StrCat("job", i)).ok());
  }
  EXPECT_LT(disk_.Stat(kPath)->size, 2'000);
  Restart();
  EXPECT_TRUE(jobs_->Contains(absl::StrCat("job", 100 * kMaxJobs - 1)));
}

TEST_F(CancelledJobsTest, JobIsForgottenAfter25Hours) {
  EXPECT_TRUE(jobs_->Add("old").ok());
  clock_.Advance(absl::Hours(1));
  EXPECT_TRUE(jobs_->Add("new").ok());
  clock_.Advance(absl::Hours(23));
  jobs_->Forget();
  EXPECT_TRUE(jobs_->Contains("old"));
  clock_.Advance(absl::Hours(1));
  jobs_->Forget();
  EXPECT_FALSE(jobs_->Contains("old"));
  EXPECT_TRUE(jobs_->Contains("new"));
}

TEST_F(CancelledJobsTest, JobIsForgotten25HoursAfterARestart) {
  EXPECT_TRUE(jobs_->Add("a").ok());
  clock_.Advance(absl::Hours(24));
  Restart();
  clock_.Advance(absl::Hours(24));
  jobs_->Forget();
  EXPECT_TRUE(jobs_->Contains("a"));
  clock_.Advance(absl::Hours(1));
  jobs_->Forget();
  EXPECT_FALSE(jobs_->Contains("a"));
}

// The clock is corrected some time after the start.
TEST_F(CancelledJobsTest, StartWithAWrongClockForgetsNoJob) {
  EXPECT_TRUE(jobs_->Add("a").ok());
  const absl::Time right = clock_.Now();
  clock_.JumpWall(right + absl::Hours(26));
  Restart();
  clock_.Advance(absl::Hours(2));
  jobs_->Forget();
  EXPECT_TRUE(jobs_->Contains("a"));
}

// A command that is delayed could run after its cancel when the clock is right again.
TEST_F(CancelledJobsTest, JumpOfTheClockForgetsNoJob) {
  EXPECT_TRUE(jobs_->Add("a").ok());
  const absl::Time right = clock_.Now();
  clock_.JumpWall(right + absl::Hours(24 * 365));
  jobs_->Forget();
  EXPECT_TRUE(jobs_->Contains("a"));
  clock_.JumpWall(right);
  clock_.Advance(absl::Hours(25));
  jobs_->Forget();
  EXPECT_FALSE(jobs_->Contains("a"));
}

TEST_F(CancelledJobsTest, JobThatCannotBeStoredIsStoredLater) {
  disk_.FailAt(SimulatedDisk::Call::kWrite, 1, ENOSPC);
  EXPECT_FALSE(jobs_->Add("a").ok());
  disk_.FailAt(SimulatedDisk::Call::kSync, 1, EIO);
  EXPECT_FALSE(jobs_->Add("b").ok());
  EXPECT_TRUE(jobs_->Contains("a"));
  EXPECT_FALSE(jobs_->all_stored());
  EXPECT_TRUE(jobs_->Add("b").ok());  // the cancel is repeated
  std::vector<std::string> stored;
  EXPECT_TRUE(jobs_->StoreRest(&stored).ok());
  EXPECT_EQ(stored, std::vector<std::string>{"a"});
  EXPECT_TRUE(jobs_->all_stored());
  Restart();
  EXPECT_TRUE(jobs_->Contains("a"));
  EXPECT_TRUE(jobs_->Contains("b"));
}

TEST_F(CancelledJobsTest, JobsBeforeADamageAreKept) {
  EXPECT_TRUE(jobs_->Add("a").ok());
  const int64_t size = disk_.Stat(kPath)->size;
  EXPECT_TRUE(jobs_->Add("b").ok());
  disk_.FlipBit(kPath, size);  // in "b": it begins before the mark of the sync
  Restart();
  EXPECT_TRUE(jobs_->Contains("a"));
  EXPECT_FALSE(jobs_->Contains("b"));
  EXPECT_TRUE(disk_.Stat(std::string(kPath) + ".damaged").ok());
  EXPECT_TRUE(jobs_->Add("d").ok());
  Restart();
  EXPECT_TRUE(jobs_->Contains("a"));
  EXPECT_TRUE(jobs_->Contains("d"));
}

TEST_F(CancelledJobsTest, FullDiskDoesNotPreventTheStart) {
  jobs_.reset();
  EXPECT_TRUE(disk_.Remove(kPath).ok());
  disk_.FailAt(SimulatedDisk::Call::kCreate, 1, ENOSPC);
  Open();
  EXPECT_TRUE(jobs_->Add("a").ok());
  Restart();
  EXPECT_TRUE(jobs_->Contains("a"));
}

}  // namespace
}  // namespace muster
