#include "services/common/base/simulated_disk.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>

namespace muster {
namespace {

using Call = SimulatedDisk::Call;

std::string Content(SimulatedDisk& disk, const std::string& path) {
  auto content = ReadSmallFile(disk, path, 1 << 20);
  return content.ok() ? *content : "(none)";
}

TEST(SimulatedDiskTest, SyncedContentSurvivesButNeedsASyncedName) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimulatedDisk disk;
    auto file = disk.Create("/a");
    ASSERT_TRUE((*file)->WriteAt("kept", 0).ok());
    ASSERT_TRUE((*file)->SyncData().ok());
    disk.Crash(seed);
    EXPECT_FALSE((*file)->WriteAt("x", 0).ok());  // the process has ended
    seen.insert(Content(disk, "/a"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"kept", "(none)"}));
}

TEST(SimulatedDiskTest, UnsyncedWritesAreTornAndReordered) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SimulatedDisk disk;
    auto file = disk.Create("/a");
    ASSERT_TRUE((*file)->WriteAt(std::string(1024, 'o'), 0).ok());
    ASSERT_TRUE((*file)->SyncData().ok());
    ASSERT_TRUE(disk.SyncFolder("/").ok());
    ASSERT_TRUE((*file)->WriteAt(std::string(1024, 'n'), 0).ok());
    disk.Crash(seed);
    const std::string content = Content(disk, "/a");
    ASSERT_EQ(content.size(), 1024u);
    seen.insert({content[0], content[512]});
  }
  EXPECT_EQ(seen, (std::set<std::string>{"oo", "on", "no", "nn"}));
}

TEST(SimulatedDiskTest, ARenameNeverLosesItsFile) {
  std::set<std::pair<bool, bool>> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SimulatedDisk disk;
    ASSERT_TRUE(disk.MakeFolder("/d").ok());
    ASSERT_TRUE(disk.Create("/a").ok());
    ASSERT_TRUE(disk.SyncFolder("/").ok());
    ASSERT_TRUE(disk.Rename("/a", "/d/b").ok());
    disk.Crash(seed);
    seen.insert({disk.Stat("/a").ok(), disk.Stat("/d/b").ok()});
  }
  EXPECT_FALSE(seen.contains({false, false}));
  EXPECT_TRUE(seen.contains({true, false}));
  EXPECT_TRUE(seen.contains({true, true}));
}

TEST(SimulatedDiskTest, AFailedSyncLosesWhatALaterOneDoesNotBringBack) {
  SimulatedDisk disk;
  auto file = disk.Create("/a");
  ASSERT_TRUE(disk.SyncFolder("/").ok());
  ASSERT_TRUE((*file)->WriteAt("data", 0).ok());
  disk.FailAt(Call::kSync, 1, EIO);
  EXPECT_FALSE((*file)->SyncData().ok());
  EXPECT_TRUE((*file)->SyncData().ok());
  EXPECT_EQ(Content(disk, "/a"), "data");
  disk.Crash(1);
  EXPECT_EQ(Content(disk, "/a"), "");
}

TEST(SimulatedDiskTest, PowerFailsAtTheNthChange) {
  SimulatedDisk disk;
  disk.PowerOffAt(2);
  auto file = disk.Create("/a");
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE((*file)->WriteAt("x", 0).ok());
  EXPECT_TRUE(disk.powered_off());
  EXPECT_FALSE(disk.Stat("/a").ok());
  disk.Crash(3);
  EXPECT_TRUE(disk.Create("/b").ok());
}

TEST(SimulatedDiskTest, ARestartKeepsWhatWasWritten) {
  SimulatedDisk disk;
  auto file = disk.Create("/a");
  ASSERT_TRUE((*file)->WriteAt("data", 0).ok());
  ASSERT_TRUE((*file)->Lock().ok());
  disk.Restart();
  EXPECT_FALSE((*file)->SyncData().ok());
  EXPECT_EQ(Content(disk, "/a"), "data");
  EXPECT_TRUE((*disk.Open("/a", OpenMode::kReadWrite))->Lock().ok());
}

TEST(SimulatedDiskTest, FullDiskAndInjectedFaults) {
  SimulatedDisk disk(1000);
  auto file = disk.Create("/a");
  EXPECT_TRUE(absl::IsResourceExhausted((*file)->Reserve(1001)));
  ASSERT_TRUE((*file)->Reserve(900).ok());
  EXPECT_EQ(disk.Space("/")->available, 100);
  EXPECT_TRUE((*file)->WriteAt(std::string(900, 'x'), 0).ok());
  EXPECT_TRUE(absl::IsResourceExhausted((*file)->WriteAt(std::string(101, 'x'), 900)));
  disk.FailAt(Call::kWrite, 2, ENOSPC);
  EXPECT_TRUE((*file)->WriteAt("12", 0).ok());
  EXPECT_TRUE(absl::IsResourceExhausted((*file)->WriteAt("abcd", 0)));
  EXPECT_TRUE((*file)->WriteAt("", 0).ok());
  EXPECT_EQ(Content(disk, "/a").substr(0, 4), "abxx");  // a short write
  disk.FlipBit("/a", 0);
  EXPECT_EQ(Content(disk, "/a").substr(0, 1), "`");
}

}  // namespace
}  // namespace muster
