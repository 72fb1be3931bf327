#include "services/common/store/sqlite/create_database.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "services/common/base/simulated_disk.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/simulated_vfs.h"

namespace muster::sqlite {
namespace {

using Call = SimulatedDisk::Call;

constexpr char kDatabase[] = "/state.db";

// Returns "absent", or the journal mode of the database.
std::string Found(SimulatedDisk& disk) {
  if (absl::IsNotFound(disk.Stat(kDatabase).status())) return "absent";
  auto db = Connection::Open(kDatabase, Connection::Access::kReadWrite);
  if (!db.ok()) return std::string(db.status().message());
  std::string mode;
  {
    Rows rows = (*db)->Query("PRAGMA journal_mode");
    if (rows.Next()) mode = rows.Text();
  }
  (*db)->Execute("CREATE TABLE t (x)");
  const absl::Status status = (*db)->TakeStatus();
  return status.ok() ? mode : std::string(status.message());
}

TEST(CreateDatabaseTest, DatabaseIsWholeOrAbsentAfterTheLossOfPower) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    bool created = false;
    for (int n = 1; !created; ++n) {
      SimulatedDisk disk(int64_t{1} << 30, seed);
      const SimulatedVfs vfs(disk, seed);
      disk.PowerOffAt(n);
      created = CreateDatabase(disk, kDatabase).ok();
      disk.Crash(seed);
      const std::string found = Found(disk);
      EXPECT_TRUE(found == "wal" || (found == "absent" && !created))
          << "seed " << seed << ", change " << n << ": " << found;
      EXPECT_TRUE(found == "wal" || CreateDatabase(disk, kDatabase).ok());
    }
  }
}

TEST(CreateDatabaseTest, DatabaseIsWholeOrAbsentAfterAFaultAndTheLossOfPower) {
  for (const Call call : {Call::kCreate, Call::kOpen, Call::kWrite, Call::kSync, Call::kStat,
                          Call::kRemove, Call::kRename, Call::kSyncFolder}) {
    for (int n = 1; n <= 8; ++n) {
      SimulatedDisk disk(int64_t{1} << 30, static_cast<uint64_t>(n));
      const SimulatedVfs vfs(disk, static_cast<uint64_t>(n));
      disk.FailAt(call, n, EIO);
      const bool created = CreateDatabase(disk, kDatabase).ok();
      disk.Crash(static_cast<uint64_t>(n));
      const std::string found = Found(disk);
      EXPECT_TRUE(found == "wal" || (found == "absent" && !created))
          << "call " << static_cast<int>(call) << ", " << n << ": " << found;
    }
  }
}

TEST(CreateDatabaseTest, LogOfALostDatabaseIsNotApplied) {
  SimulatedDisk disk;
  const SimulatedVfs vfs(disk, 1);
  for (const char* left : {"/state.db-wal", "/state.db-journal", "/state.db.new"}) {
    auto file = disk.Create(left);
    ASSERT_TRUE(file.ok() && (*file)->WriteAt("left", 0).ok());
  }
  ASSERT_TRUE(CreateDatabase(disk, kDatabase).ok());
  EXPECT_TRUE(absl::IsNotFound(disk.Stat("/state.db-journal").status()));
  EXPECT_TRUE(absl::IsNotFound(disk.Stat("/state.db-wal").status()));
  EXPECT_TRUE(absl::IsNotFound(disk.Stat("/state.db.new").status()));
  EXPECT_EQ(Found(disk), "wal");
}

}  // namespace
}  // namespace muster::sqlite
