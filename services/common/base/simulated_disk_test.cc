#include "services/common/base/simulated_disk.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>
#include <vector>

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

TEST(SimulatedDiskTest, AFailedSyncMayHaveWrittenSomeSectors) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SimulatedDisk disk(1 << 20, seed);
    auto file = disk.Create("/a");
    ASSERT_TRUE((*file)->WriteAt(std::string(1024, 'o'), 0).ok());
    ASSERT_TRUE((*file)->SyncData().ok());
    ASSERT_TRUE(disk.SyncFolder("/").ok());
    ASSERT_TRUE((*file)->WriteAt(std::string(1024, 'n'), 0).ok());
    disk.FailAt(Call::kSync, 1, EIO);
    EXPECT_FALSE((*file)->SyncData().ok());
    disk.Crash(seed);
    const std::string content = Content(disk, "/a");
    seen.insert({content[0], content[512]});
  }
  EXPECT_EQ(seen, (std::set<std::string>{"oo", "on", "no", "nn"}));
}

TEST(SimulatedDiskTest, NothingChangesAfterAPowerOffUntilTheRestart) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.Create("/a").ok());
  disk.PowerOff();
  EXPECT_FALSE(disk.Remove("/a").ok());
  disk.Restart();
  EXPECT_TRUE(disk.Stat("/a").ok());
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

TEST(SimulatedDiskTest, CapacityThatIsReachedTakesWhatFits) {
  SimulatedDisk disk;
  auto file = disk.Create("/a");
  ASSERT_TRUE((*file)->WriteAt("1234", 0).ok());
  disk.SetCapacity(disk.used() + 2);
  EXPECT_TRUE(absl::IsResourceExhausted((*file)->WriteAt("abcde", 3)));
  EXPECT_EQ(Content(disk, "/a"), "123abc");
  EXPECT_TRUE((*file)->WriteAt("xyz", 0).ok());  // in its place
  disk.SetCapacity(1'000);
  EXPECT_TRUE((*file)->WriteAt("abcde", 3).ok());
}

TEST(SimulatedDiskTest, FilesWithoutASyncAreNotDurable) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.MakeFolder("/b").ok());
  ASSERT_TRUE(disk.SyncFolder("/").ok());
  auto file = disk.Create("/b/a");
  ASSERT_TRUE((*file)->WriteAt("1", 0).ok());
  EXPECT_EQ(disk.NotDurable("/b"), std::vector<std::string>{"/b/a"});
  ASSERT_TRUE((*file)->SyncData().ok());
  EXPECT_EQ(disk.NotDurable("/b"), std::vector<std::string>{"/b/a"});
  ASSERT_TRUE(disk.SyncFolder("/b").ok());
  EXPECT_TRUE(disk.NotDurable("/b").empty());
  EXPECT_TRUE(disk.HasDurableName("/b/a"));
  disk.PowerOffAfter(Call::kRename, 1);
  ASSERT_TRUE(disk.Rename("/b/a", "/b/c").ok());
  EXPECT_FALSE(disk.SyncFolder("/b").ok());
  disk.Restart();
  EXPECT_EQ(disk.NotDurable("/b"), std::vector<std::string>{"/b/c"});
  EXPECT_FALSE(disk.HasDurableName("/b/c"));
}

TEST(SimulatedDiskTest, SyncAfterAFailedSyncIsReportedUnlessTheBytesAreWrittenAgain) {
  SimulatedDisk disk;
  auto file = disk.Create("/a");
  const std::string content(5'000, 'x');
  ASSERT_TRUE((*file)->WriteAt(content, 0).ok());
  disk.FailAt(Call::kSync, 1, EIO);
  EXPECT_FALSE((*file)->SyncData().ok());
  EXPECT_TRUE(disk.SyncedAfterLoss().empty());
  ASSERT_TRUE((*file)->WriteAt(content, 0).ok());
  EXPECT_TRUE((*file)->SyncData().ok());
  EXPECT_TRUE(disk.SyncedAfterLoss().empty());
  ASSERT_TRUE((*file)->WriteAt(std::string(5'000, 'y'), 0).ok());
  disk.FailAt(Call::kSync, 1, EIO);
  EXPECT_FALSE((*file)->SyncData().ok());
  EXPECT_TRUE((*file)->SyncData().ok());
  EXPECT_EQ(disk.SyncedAfterLoss(), std::vector<std::string>{"/a"});
}

}  // namespace
}  // namespace muster
