#include "services/common/base/disk_reserve.h"

#include <gtest/gtest.h>

#include <string>

#include "services/common/base/error.h"
#include "services/common/base/simulated_disk.h"

namespace muster {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kDisk = 64 * kMiB;
constexpr int64_t kReserve = 2 * kMiB;  // 1/32 of the disk

class DiskReserveTest : public ::testing::Test {
 protected:
  DiskReserveTest() { EXPECT_TRUE(disk_.MakeFolder("/state").ok()); }

  int64_t Free() { return disk_.Space("/state")->available; }

  // Leaves this many bytes free.
  void Fill(int64_t leave) {
    auto file = *disk_.Open("/state/filler", OpenMode::kReadWriteOrCreate);
    const int64_t size = *file->Size();
    ASSERT_TRUE(file->WriteAt(std::string(static_cast<size_t>(Free() - leave), 'x'), size).ok());
  }

  SimulatedDisk disk_{kDisk};
};

TEST_F(DiskReserveTest, StartOccupiesTheSpaceOnce) {
  DiskReserve reserve(disk_, "/state/reserve", 32 * kMiB);
  reserve.Start();
  EXPECT_EQ(reserve.reserved(), kReserve);
  EXPECT_EQ(Free(), kDisk - kReserve);
  DiskReserve second(disk_, "/state/reserve", 32 * kMiB);
  second.Start();
  EXPECT_EQ(second.reserved(), kReserve);
  EXPECT_EQ(Free(), kDisk - kReserve);
}

TEST_F(DiskReserveTest, DataIsRefusedBeforeItTouchesTheReserve) {
  DiskReserve reserve(disk_, "/state/reserve", kReserve);
  reserve.Start();
  EXPECT_TRUE(reserve.CheckData(kMiB).ok());
  Fill(3 * kMiB);
  EXPECT_TRUE(reserve.CheckData(kMiB).ok());
  const absl::Status refused = reserve.CheckData(kMiB + 1);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(ReasonOf(refused), "DISK_FULL");
  EXPECT_NE(refused.message().find("3145728"), std::string::npos) << refused;
  EXPECT_NE(refused.message().find("2097152"), std::string::npos) << refused;
  EXPECT_EQ(reserve.reserved(), kReserve);
}

TEST_F(DiskReserveTest, ReleaseMakesRoomOnceAndDataStaysRefusedUntilItIsRestored) {
  DiskReserve reserve(disk_, "/state/reserve", kReserve);
  reserve.Start();
  Fill(0);
  EXPECT_TRUE(reserve.Release());
  EXPECT_FALSE(reserve.Release());
  EXPECT_EQ(Free(), kReserve);
  EXPECT_FALSE(reserve.CheckData(1).ok());
  reserve.Restore();
  EXPECT_EQ(reserve.reserved(), 0);
  ASSERT_TRUE(disk_.Remove("/state/filler").ok());
  EXPECT_TRUE(reserve.CheckData(1).ok());  // restores it
  EXPECT_EQ(reserve.reserved(), kReserve);
}

TEST_F(DiskReserveTest, StartOnAFullDiskReleasesTheReserve) {
  {
    DiskReserve reserve(disk_, "/state/reserve", kReserve);
    reserve.Start();
  }
  Fill(0);
  disk_.Restart();
  DiskReserve reserve(disk_, "/state/reserve", kReserve);
  reserve.Start();
  EXPECT_EQ(reserve.reserved(), 0);
  EXPECT_EQ(Free(), kReserve);
}

TEST_F(DiskReserveTest, AnotherProgramReleasesItOnlyOnAFullDisk) {
  DiskReserve reserve(disk_, "/state/reserve", kReserve);
  reserve.Start();
  ReleaseReserveIfFull(disk_, "/state/reserve");
  EXPECT_TRUE(disk_.Stat("/state/reserve").ok());
  Fill(0);
  ReleaseReserveIfFull(disk_, "/state/reserve");
  EXPECT_EQ(Free(), kReserve);
}

TEST_F(DiskReserveTest, NoReserveAdmitsEverything) {
  DiskReserve reserve(disk_, "/state/reserve", 0);
  reserve.Start();
  Fill(0);
  EXPECT_TRUE(reserve.CheckData(kMiB).ok());
  EXPECT_FALSE(reserve.Release());
}

}  // namespace
}  // namespace muster
