#include "services/common/store/sqlite/integrity.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "services/common/base/simulated_disk.h"

namespace muster::sqlite {
namespace {

constexpr char kDatabase[] = "/state.db";
constexpr char kLog[] = "/state.db-wal";

// Leaves a log whose sync failed behind, as a process does that ends then.
void LeaveUnsyncedLog(SimulatedDisk& disk, const std::string& log) {
  auto file = disk.Create(kLog);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->WriteAt(log, 0).ok());
  disk.FailAt(SimulatedDisk::Call::kSync, 1, EIO);
  ASSERT_FALSE((*file)->SyncData().ok());
  disk.Restart();
}

TEST(RewriteLogTest, LogOfAFailedSyncSurvivesTheLossOfPower) {
  std::string log;
  for (char page = 'a'; page <= 'z'; ++page) log.append(4096, page);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedDisk disk(int64_t{1} << 30, seed);
    LeaveUnsyncedLog(disk, log);
    ASSERT_EQ(*ReadSmallFile(disk, kLog, 1 << 20), log);
    ASSERT_TRUE(RewriteLog(disk, kDatabase).ok());
    disk.Crash(seed);
    const auto kept = ReadSmallFile(disk, kLog, 1 << 20);
    ASSERT_TRUE(kept.ok()) << kept.status();
    EXPECT_EQ(*kept, log) << "seed " << seed;
  }
}

TEST(RewriteLogTest, DatabaseWithoutALogIsUnchanged) {
  SimulatedDisk disk;
  EXPECT_TRUE(RewriteLog(disk, kDatabase).ok());
  EXPECT_FALSE(disk.Stat(kLog).ok());
}

TEST(RewriteLogTest, FailedSyncFails) {
  SimulatedDisk disk;
  LeaveUnsyncedLog(disk, "frames");
  disk.FailAt(SimulatedDisk::Call::kSync, 1, EIO);
  EXPECT_FALSE(RewriteLog(disk, kDatabase).ok());
}

}  // namespace
}  // namespace muster::sqlite
