#include "services/common/base/disk_gauges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "services/common/base/file_ops.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(DiskGaugesTest, SizeIsThatOfTheFileSystem) {
  const std::string folder = ::testing::TempDir();
  Metrics metrics;
  AddDiskGauges(metrics, folder);
  EXPECT_EQ(DiskSize(folder), static_cast<double>(std::filesystem::space(folder).capacity));
  EXPECT_THAT(metrics.Text(), HasSubstr("\nmuster_disk_size_bytes "));
}

TEST(DiskGaugesTest, UnknownDiskHasNoValue) {
  EXPECT_TRUE(std::isnan(DiskSize("/nowhere/at/all")));
}

TEST(DiskGaugesTest, ReserveThatIsNotConfiguredHasNoValue) {
  DiskReserve reserve(PosixFileOps(), ::testing::TempDir() + "/disk_gauges_reserve", 0);
  Metrics with;
  AddReserveGauge(with, reserve, 1);
  EXPECT_THAT(with.Text(), HasSubstr("\nmuster_disk_reserve_bytes 0\n"));
  Metrics without;
  AddReserveGauge(without, reserve, 0);
  EXPECT_THAT(without.Text(), ::testing::Not(HasSubstr("\nmuster_disk_reserve_bytes 0\n")));
}

}  // namespace
}  // namespace muster
