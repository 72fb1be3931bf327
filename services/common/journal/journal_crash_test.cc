// A journal on a disk that loses power, fails and fills up, over many seeds and several processes.
// After each: the remaining records are the first of the appended ones, in order and unchanged; no
// synced record is missing; without loss of power no appended record is missing; damage is never
// reported.
#include <gtest/gtest.h>

#include <cerrno>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/journal/journal.h"

namespace muster {
namespace {

using Call = SimulatedDisk::Call;

constexpr char kPath[] = "/d/journal";
constexpr JournalOptions kOptions = {.max_record = 4'000, .max_unsynced = 9'000};

class Lives {
 public:
  explicit Lives(uint64_t seed) : chance_(seed) {
    EXPECT_TRUE(disk_.MakeFolder("/d").ok());
    EXPECT_TRUE(disk_.SyncFolder("/").ok());
  }

  SimulatedDisk& disk() { return disk_; }
  uint64_t Chance(uint64_t below) { return chance_() % below; }

  // Opens the journal without faults and compares it with the promises.
  void Check(bool power_lost) {
    std::vector<std::string> found;
    auto journal = Journal::Open(disk_, kPath, [&](std::string_view record, int64_t) {
      found.emplace_back(record);
      return absl::OkStatus();
    });
    if (absl::IsNotFound(journal.status())) {
      ASSERT_FALSE(created_);
      ASSERT_TRUE(appended_.empty());
      return;
    }
    ASSERT_TRUE(journal.ok()) << journal.status();
    ASSERT_GE(found.size(), power_lost ? durable_ : appended_.size());
    ASSERT_LE(found.size(), appended_.size());
    appended_.resize(found.size());
    ASSERT_TRUE(found == appended_);
    durable_ = found.size();
    created_ = true;
  }

  // Opens or creates the journal and uses it until too many calls fail.
  void Live() {
    auto journal = Open();
    if (!journal.ok()) return;
    const uint64_t calls = 1 + Chance(40);
    for (uint64_t i = 0; i < calls; ++i) {
      if (Chance(4) == 0) {
        if ((*journal)->Sync().ok()) durable_ = appended_.size();
        continue;
      }
      const size_t size = 1 + Chance(Chance(3) == 0 ? kOptions.max_record : 200);
      std::string record(size, static_cast<char>('a' + appended_.size() % 26));
      const int64_t durable_before = (*journal)->durable_end();
      const bool appended = (*journal)->Append(record).ok();
      if ((*journal)->durable_end() > durable_before) durable_ = appended_.size();
      if (appended) appended_.push_back(std::move(record));
    }
  }

 private:
  absl::StatusOr<std::unique_ptr<Journal>> Open() {
    auto journal =
        Journal::Open(disk_, kPath, [](std::string_view, int64_t) { return absl::OkStatus(); });
    if (journal.ok()) durable_ = appended_.size();
    if (!absl::IsNotFound(journal.status())) return journal;
    journal = Journal::Create(disk_, kPath, kOptions);
    created_ = created_ || journal.ok();
    return journal;
  }

  std::mt19937_64 chance_;
  SimulatedDisk disk_;
  bool created_ = false;
  std::vector<std::string> appended_;
  size_t durable_ = 0;
};

TEST(JournalCrashTest, LossOfPowerAndProcessOverSeveralLives) {
  for (uint64_t seed = 0; seed < 800; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Lives lives(seed);
    for (int life = 0; life < 6; ++life) {
      SCOPED_TRACE(absl::StrCat("life ", life));
      if (lives.Chance(3) != 0) lives.disk().PowerOffAt(1 + static_cast<int>(lives.Chance(40)));
      lives.Live();
      const bool power_lost = lives.disk().powered_off() || lives.Chance(2) == 0;
      if (power_lost) {
        lives.disk().Crash(lives.Chance(1'000'000));
      } else {
        lives.disk().Restart();
      }
      ASSERT_NO_FATAL_FAILURE(lives.Check(power_lost));
    }
  }
}

// The n-th call of each kind fails; then the process or the power is lost.
TEST(JournalCrashTest, FailureOfEachCall) {
  for (const Call call : {Call::kCreate, Call::kOpen, Call::kWrite, Call::kRead, Call::kSync,
                          Call::kTruncate, Call::kSyncFolder, Call::kRemove, Call::kStat}) {
    for (const int error : {EIO, ENOSPC, EMFILE}) {
      for (uint64_t seed = 0; seed < 40; ++seed) {
        SCOPED_TRACE(
            absl::StrCat("call ", static_cast<int>(call), " error ", error, " seed ", seed));
        Lives lives(seed);
        for (int life = 0; life < 3; ++life) {
          SCOPED_TRACE(absl::StrCat("life ", life));
          lives.disk().FailAt(call, 1 + static_cast<int>(lives.Chance(12)), error);
          lives.Live();
          const bool power_lost = lives.Chance(2) == 0;
          if (power_lost) {
            lives.disk().Crash(lives.Chance(1'000'000));
          } else {
            lives.disk().Restart();
          }
          ASSERT_NO_FATAL_FAILURE(lives.Check(power_lost));
        }
      }
    }
  }
}

// A sync fails, the process is lost before the next sync, and the next process reads the records;
// then the power is lost.
TEST(JournalCrashTest, OpenDoesNotTrustAnEarlierSync) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Lives lives(seed);
    lives.Live();
    lives.disk().FailAt(Call::kSync, 1, EIO);
    lives.Live();
    lives.disk().Restart();
    ASSERT_NO_FATAL_FAILURE(lives.Check(false));
    lives.disk().Crash(seed);
    ASSERT_NO_FATAL_FAILURE(lives.Check(true));
  }
}

// The process is lost during the creation; the next one writes a record, and then the power is
// lost.
TEST(JournalCrashTest, JournalOfAnInterruptedCreationSurvivesTheLossOfPower) {
  for (int n = 1; n <= 5; ++n) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(absl::StrCat("n ", n, " seed ", seed));
      SimulatedDisk disk;
      ASSERT_TRUE(disk.MakeFolder("/d").ok());
      ASSERT_TRUE(disk.SyncFolder("/").ok());
      disk.PowerOffAt(n);
      Journal::Create(disk, kPath, kOptions).status().IgnoreError();
      disk.PowerOff();
      disk.Restart();
      int64_t records = 0;
      const auto count = [&](std::string_view, int64_t) {
        ++records;
        return absl::OkStatus();
      };
      auto journal = Journal::Open(disk, kPath, count);
      if (!journal.ok()) journal = Journal::Create(disk, kPath, kOptions);
      ASSERT_TRUE(journal.ok()) << journal.status();
      ASSERT_TRUE((*journal)->Append("record").ok());
      ASSERT_TRUE((*journal)->Sync().ok());
      disk.Crash(seed);
      ASSERT_TRUE(Journal::Open(disk, kPath, count).ok());
      ASSERT_EQ(records, 1);
    }
  }
}

TEST(JournalCrashTest, FullDiskKeepsWhatWasAppended) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Lives lives(seed);
    for (int n = 1; n <= 5; ++n) {
      lives.disk().FailAt(Call::kWrite, n, ENOSPC);
      lives.Live();
      lives.disk().Restart();
      ASSERT_NO_FATAL_FAILURE(lives.Check(false));
    }
  }
}

}  // namespace
}  // namespace muster
