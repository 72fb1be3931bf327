#include "services/common/base/timed_file_ops.h"

#include <gtest/gtest.h>

#include <vector>

#include "services/common/base/fake_clock.h"
#include "services/common/base/simulated_disk.h"

namespace muster {
namespace {

TEST(TimedFileOpsTest, SyncsAreMeasuredAndNothingElse) {
  FakeClock clock;
  SimulatedDisk disk;
  std::vector<absl::Duration> syncs;
  TimedFileOps ops(disk, clock, [&](absl::Duration took) { syncs.push_back(took); });
  ASSERT_TRUE(ops.MakeFolder("/a").ok());
  auto file = ops.Create("/a/f");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->WriteAt("hello", 0).ok());
  EXPECT_TRUE(syncs.empty());
  ASSERT_TRUE((*file)->SyncData().ok());
  ASSERT_TRUE(ops.SyncFolder("/a").ok());
  EXPECT_EQ(syncs, std::vector<absl::Duration>(2, absl::ZeroDuration()));
  EXPECT_TRUE(ops.Measure([&] {
                   clock.Advance(absl::Seconds(3));
                   return absl::OkStatus();
                 })
                  .ok());
  EXPECT_EQ(syncs.back(), absl::Seconds(3));
}

}  // namespace
}  // namespace muster
