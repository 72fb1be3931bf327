#include "services/simulation/split_disk.h"

#include <gtest/gtest.h>

#include "services/common/base/simulated_disk.h"

namespace muster::testing {
namespace {

TEST(SplitDiskTest, EachFolderIsOnItsOwnDisk) {
  SimulatedDisk a;
  SimulatedDisk b;
  SplitDisk disks;
  disks.Mount("a", a);
  disks.Mount("b", b);
  ASSERT_TRUE(disks.MakeFolder("/a").ok());
  ASSERT_TRUE(disks.MakeFolder("/b").ok());
  ASSERT_TRUE(WriteFileDurably(disks, "/a/x", "of a").ok());
  ASSERT_TRUE(disks.SyncFolder("/a").ok());
  EXPECT_EQ(*ReadSmallFile(a, "/a/x", 100), "of a");
  EXPECT_TRUE(absl::IsNotFound(b.Stat("/a/x").status()));
  a.PowerOff();
  EXPECT_FALSE(disks.Stat("/a/x").ok());
  EXPECT_TRUE(WriteFileDurably(disks, "/b/x", "of b").ok());
  EXPECT_TRUE(absl::IsNotFound(disks.Stat("/c/x").status()));
}

}  // namespace
}  // namespace muster::testing
