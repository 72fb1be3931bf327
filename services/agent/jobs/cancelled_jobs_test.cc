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

  using Jobs = std::vector<std::string>;
  Jobs Store() {
    Jobs stored;
    jobs_->Store(&stored).IgnoreError();
    return stored;
  }

  void AddStored(const std::string& job) {
    EXPECT_TRUE(jobs_->Add(job));
    EXPECT_EQ(Store(), Jobs{job});
  }

  FakeClock clock_;
  SimulatedDisk disk_;
  std::unique_ptr<CancelledJobs> jobs_;
};

TEST_F(CancelledJobsTest, StoredJobIsKnownAfterAKill) {
  EXPECT_FALSE(jobs_->Contains("a"));
  EXPECT_TRUE(jobs_->Add("a"));
  EXPECT_TRUE(jobs_->Contains("a"));
  EXPECT_FALSE(jobs_->IsStored("a"));
  EXPECT_EQ(Store(), Jobs{"a"});
  EXPECT_TRUE(jobs_->IsStored("a"));
  EXPECT_TRUE(jobs_->Add("b"));
  Restart();
  EXPECT_TRUE(jobs_->Contains("a"));
  EXPECT_TRUE(jobs_->IsStored("a"));
  EXPECT_FALSE(jobs_->Contains("b"));
}

TEST_F(CancelledJobsTest, FirstOutcomeIsKept) {
  const v1::JobRecord refused = FinalRecord(v1::JOB_OUTCOME_REFUSED, "COMMAND_REFUSED", "why");
  EXPECT_TRUE(jobs_->Add("refused", refused));
  EXPECT_TRUE(jobs_->Add("refused"));
  EXPECT_TRUE(jobs_->Add("cancelled"));
  EXPECT_TRUE(jobs_->Add("cancelled", refused));
  EXPECT_TRUE(jobs_->Add("failed", FinalRecord(v1::JOB_OUTCOME_FAILED, "", "")));
  EXPECT_EQ(jobs_->FinalOf("refused").final().detail(), "why");
  Store();
  for (int restarts = 0; restarts < 2; ++restarts) {
    EXPECT_EQ(jobs_->FinalOf("refused").final().outcome(), v1::JOB_OUTCOME_REFUSED);
    EXPECT_EQ(jobs_->FinalOf("refused").final().reason(), "COMMAND_REFUSED");
    EXPECT_EQ(jobs_->FinalOf("cancelled").final().outcome(), v1::JOB_OUTCOME_CANCELLED);
    EXPECT_EQ(jobs_->FinalOf("failed").final().outcome(), v1::JOB_OUTCOME_FAILED);
    Restart();
  }
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
    for (size_t i = 0; i < 4 * kMaxJobs && !disk.powered_off(); ++i) {
      clock_.Advance(absl::Hours(6));
      jobs->Forget();
      EXPECT_TRUE(jobs->Add(std::to_string(i)));
      jobs->Store(&stored).IgnoreError();
    }
    finished = !disk.powered_off();
    jobs.reset();
    disk.Crash(static_cast<uint64_t>(call));
    jobs = CancelledJobs::Open(disk, kPath, clock_, kMaxJobs).value();
    // Those of the last 24 hours; the one that was not stored may be known, too.
    for (size_t i = stored.size() - std::min(stored.size(), kMaxJobs - 1); i < stored.size(); ++i) {
      EXPECT_TRUE(jobs->Contains(stored[i])) << stored[i];
    }
  }
}

TEST_F(CancelledJobsTest, NoJobIsDisplacedOrAddedPastTheLimit) {
  for (size_t i = 0; i < kMaxJobs; ++i) {
    ASSERT_TRUE(jobs_->Add(std::to_string(i)));
  }
  Store();
  for (int restarts = 0; restarts < 2; ++restarts) {
    EXPECT_TRUE(jobs_->Add("0"));
    EXPECT_FALSE(jobs_->Add("last"));
    EXPECT_FALSE(jobs_->Contains("last"));
    for (size_t i = 0; i < kMaxJobs; ++i) EXPECT_TRUE(jobs_->Contains(std::to_string(i)));
    EXPECT_EQ(Store(), Jobs());
    Restart();
  }
  clock_.Advance(absl::Hours(25));
  jobs_->Forget();
  EXPECT_TRUE(jobs_->Add("last"));
}

// The process never runs for 25 hours.
TEST_F(CancelledJobsTest, FullListOfANodeThatRestartsEachDayDropsTheOldJobs) {
  for (size_t i = 0; i < 4 * kMaxJobs; ++i) {
    jobs_->HandleCommand(clock_.Now());
    ASSERT_TRUE(jobs_->Add(std::to_string(i))) << i;
    EXPECT_EQ(Store(), Jobs{std::to_string(i)});
    clock_.Advance(absl::Hours(24));
    Restart();
    jobs_->Forget();
    EXPECT_TRUE(jobs_->Contains(std::to_string(i)));
  }
}

TEST_F(CancelledJobsTest, FullListKeepsTheJobsOfTheDayBeforeACommand) {
  for (size_t i = 0; i < kMaxJobs; ++i) AddStored(std::to_string(i));
  clock_.Advance(absl::Hours(24));
  Restart();
  jobs_->HandleCommand(clock_.Now());
  EXPECT_FALSE(jobs_->Add("last"));
  clock_.Advance(absl::Hours(23));
  EXPECT_FALSE(jobs_->Add("last")) << "no later command was verified";
  jobs_->HandleCommand(clock_.Now());
  EXPECT_TRUE(jobs_->Add("last"));
}

// A job of a clock that was ahead precedes jobs that are dropped before it.
TEST_F(CancelledJobsTest, JobThatIsNotDroppedIsKnownAfterARestart) {
  const absl::Time right = clock_.Now();
  clock_.JumpWall(right + absl::Hours(24 * 30));
  AddStored("ahead");
  clock_.JumpWall(right);
  for (size_t i = 1; i < kMaxJobs; ++i) AddStored(std::to_string(i));
  clock_.Advance(absl::Hours(48));
  Restart();
  jobs_->HandleCommand(clock_.Now());
  AddStored("new");
  Restart();
  EXPECT_TRUE(jobs_->Contains("ahead"));
  EXPECT_TRUE(jobs_->Contains("new"));
  EXPECT_FALSE(jobs_->Contains("1"));
}

TEST_F(CancelledJobsTest, JournalDoesNotGrow) {
  for (size_t i = 0; i < 100 * kMaxJobs; ++i) {
    clock_.Advance(absl::Hours(6));
    jobs_->Forget();
    ASSERT_TRUE(jobs_->Add(absl::StrCat("job", i)));
    Store();
  }
  EXPECT_LT(disk_.Stat(kPath)->size, 2'000);
  Restart();
  EXPECT_TRUE(jobs_->Contains(absl::StrCat("job", 100 * kMaxJobs - 1)));
}

TEST_F(CancelledJobsTest, OneSyncStoresAllJobs) {
  for (const char* job : {"a", "b", "c"}) EXPECT_TRUE(jobs_->Add(job));
  disk_.FailAt(SimulatedDisk::Call::kSync, 2, EIO);
  EXPECT_EQ(Store(), (Jobs{"a", "b", "c"}));
  EXPECT_TRUE(jobs_->all_stored());
}

TEST_F(CancelledJobsTest, JobIsForgottenAfter25Hours) {
  AddStored("old");
  clock_.Advance(absl::Hours(1));
  AddStored("new");
  clock_.Advance(absl::Hours(23));
  jobs_->Forget();
  EXPECT_TRUE(jobs_->Contains("old"));
  clock_.Advance(absl::Hours(1));
  jobs_->Forget();
  EXPECT_FALSE(jobs_->Contains("old"));
  EXPECT_TRUE(jobs_->Contains("new"));
}

TEST_F(CancelledJobsTest, JobIsForgotten25HoursAfterARestart) {
  AddStored("a");
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
  AddStored("a");
  const absl::Time right = clock_.Now();
  clock_.JumpWall(right + absl::Hours(26));
  Restart();
  clock_.Advance(absl::Hours(2));
  jobs_->Forget();
  EXPECT_TRUE(jobs_->Contains("a"));
}

// A command that is delayed could run after its cancel when the clock is right again.
TEST_F(CancelledJobsTest, JumpOfTheClockForgetsNoJob) {
  AddStored("a");
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
  for (const auto call : {SimulatedDisk::Call::kWrite, SimulatedDisk::Call::kSync}) {
    const Jobs jobs = {absl::StrCat("a", static_cast<int>(call)),
                       absl::StrCat("b", static_cast<int>(call))};
    EXPECT_TRUE(jobs_->Add(jobs[0]));
    disk_.FailAt(call, 1, EIO);
    EXPECT_EQ(Store(), Jobs());
    EXPECT_TRUE(jobs_->Contains(jobs[0]));
    EXPECT_FALSE(jobs_->IsStored(jobs[0]));
    EXPECT_TRUE(jobs_->Add(jobs[1]));
    EXPECT_EQ(Store(), jobs);
    EXPECT_TRUE(jobs_->all_stored());
    Restart();
    for (const std::string& job : jobs) EXPECT_TRUE(jobs_->Contains(job));
  }
}

TEST_F(CancelledJobsTest, JobThatCannotBeStoredIsForgotten) {
  EXPECT_TRUE(jobs_->Add("a"));
  disk_.FailAt(SimulatedDisk::Call::kSync, 1, EIO);
  EXPECT_EQ(Store(), Jobs());
  clock_.Advance(absl::Hours(20));
  EXPECT_TRUE(jobs_->Add("b"));
  clock_.Advance(absl::Hours(5));
  jobs_->Forget();
  EXPECT_EQ(Store(), Jobs{"b"});
  Restart();
  EXPECT_TRUE(jobs_->Contains("b"));
}

TEST_F(CancelledJobsTest, JobsBeforeADamageAreKept) {
  AddStored("a");
  const int64_t size = disk_.Stat(kPath)->size;
  AddStored("b");
  disk_.FlipBit(kPath, size);  // in "b": it begins before the mark of the sync
  Restart();
  EXPECT_TRUE(jobs_->Contains("a"));
  EXPECT_FALSE(jobs_->Contains("b"));
  EXPECT_TRUE(disk_.Stat(std::string(kPath) + ".damaged").ok());
  AddStored("d");
  Restart();
  EXPECT_TRUE(jobs_->Contains("a"));
  EXPECT_TRUE(jobs_->Contains("d"));
}

TEST_F(CancelledJobsTest, FullDiskDoesNotPreventTheStart) {
  jobs_.reset();
  EXPECT_TRUE(disk_.Remove(kPath).ok());
  disk_.FailAt(SimulatedDisk::Call::kCreate, 1, ENOSPC);
  Open();
  AddStored("a");
  Restart();
  EXPECT_TRUE(jobs_->Contains("a"));
}

}  // namespace
}  // namespace muster
