// Loss of the process at every change of the disk: each acknowledged result is delivered unchanged,
// nothing is delivered that was finished, and no bytes are left behind.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/file_ops.h"
#include "services/common/store/sqlite/fault_vfs.h"
#include "services/relay/testing/snapshots.h"
#include "services/relay/testing/spool_fixture.h"

namespace muster {
namespace {

using testing::Snapshots;
using testing::SpoolFixture;

const std::string& Small() {
  static const std::string text = Pattern(900);
  return text;
}
const std::string& Large() {
  static const std::string text = Pattern(70'000);
  return text;
}

struct Progress {
  std::set<std::string> acknowledged;
  std::set<std::string> finishing;  // may be removed already
};

struct Copy {
  std::string folder;
  Progress progress;
};

// Delivers two results, takes the first one out, and drops an upload.
void Work(SpoolFixture& fixture, Progress& progress) {
  ASSERT_TRUE(fixture.Open().ok());
  ASSERT_TRUE(fixture.Deliver("n1", "facts", Small()).ok());
  progress.acknowledged.insert("n1/facts");
  ASSERT_TRUE(fixture.Deliver("n1", "logs", Large()).ok());
  progress.acknowledged.insert("n1/logs");
  ASSERT_EQ(fixture.Next(), "n1/facts");
  progress.finishing.insert("n1/facts");
  fixture.spool().Finish(*fixture.delivery, "committed");
  ASSERT_EQ(fixture.Next(), "n1/logs");
  progress.finishing.insert("n1/logs");
  fixture.spool().Finish(*fixture.delivery, "committed");
  const auto dropped = SpoolFixture::Request("n2", "logs", Large());
  const auto opened = fixture.OpenUpload(dropped);
  ASSERT_TRUE(fixture.Send(*opened, "n2", Large(), 30'000).ok());
  fixture.spool().DiscardUpload(dropped.description());
  fixture.DrainDisk();
  fixture.Close();
}

// Opens what a crash left, delivers all results, and uses the spool further.
void CheckAndContinue(SpoolFixture& fixture, const Progress& progress) {
  ASSERT_TRUE(fixture.Open().ok());
  std::set<std::string> found;
  for (std::string next = fixture.Next(); !next.empty(); next = fixture.Next()) {
    EXPECT_FALSE(fixture.delivery->expired) << fixture.delivery->why;
    EXPECT_TRUE(fixture.Bytes() == (next == "n1/facts" ? Small() : Large())) << next;
    EXPECT_TRUE(found.insert(next).second);
    fixture.spool().Finish(*fixture.delivery, "committed");
  }
  for (const std::string& name : progress.acknowledged) {
    EXPECT_TRUE(found.contains(name) || progress.finishing.contains(name)) << name;
  }
  for (const char* plugin : {"facts", "logs"}) {
    const std::string& body = std::string(plugin) == "facts" ? Small() : Large();
    ASSERT_TRUE(fixture.Deliver("n1", plugin, body, 2).ok());
    ASSERT_EQ(fixture.Next(), absl::StrCat("n1/", plugin));
    EXPECT_TRUE(fixture.Bytes() == body);
    fixture.spool().Finish(*fixture.delivery, "committed");
  }
  fixture.spool().DiscardUpload(SpoolFixture::Request("n2", "logs", "").description());
  for (const char* plugin : {"facts", "logs"}) {
    fixture.spool().DiscardUpload(SpoolFixture::Request("n1", plugin, "").description());
  }
  fixture.DrainDisk();
  EXPECT_TRUE(fixture.Blobs().empty());
  fixture.Close();
}

TEST(SpoolCrashTest, LossOfTheProcessAtAnyChangeLosesNoAcknowledgedResult) {
  SpoolFixture fixture;
  std::vector<Copy> copies;
  {
    Snapshots snapshots(fixture.options.folder);
    fixture.ops = &snapshots.ops();
    Progress progress;
    snapshots.Start([&](const std::string& folder) { copies.push_back({folder, progress}); });
    Work(fixture, progress);
    snapshots.Stop();
    EXPECT_EQ(progress.finishing.size(), 2u);
  }
  ASSERT_GT(copies.size(), 50u);
  fixture.ops = &PosixFileOps();
  for (const Copy& copy : copies) {
    SCOPED_TRACE(copy.folder);
    fixture.options.folder = copy.folder;
    CheckAndContinue(fixture, copy.progress);
    if (::testing::Test::HasFailure()) return;
    std::filesystem::remove_all(copy.folder);
  }
}

TEST(SpoolCrashTest, RowsAreSyncedWhenAResultIsAcknowledged) {
  SpoolFixture fixture;
  sqlite::FaultVfs vfs;
  ASSERT_TRUE(fixture.Open().ok());
  ASSERT_TRUE(fixture.Deliver("n1", "facts", Small()).ok());
  EXPECT_FALSE(vfs.has_unsynced_writes());
  ASSERT_TRUE(fixture.Deliver("n1", "logs", Large()).ok());
  EXPECT_FALSE(vfs.has_unsynced_writes());
  fixture.Close();
}

// Delivers results and writes the number of each acknowledged one into the pipe, until it is
// killed.
[[noreturn]] void DeliverUntilKilled(SpoolFixture& fixture, int pipe) {
  if (!fixture.Open().ok()) _exit(3);
  for (int i = 0;; ++i) {
    if (!fixture.Deliver("n1", absl::StrCat("p", i), Small()).ok()) _exit(4);
    if (write(pipe, &i, sizeof(i)) != sizeof(i)) _exit(5);
  }
}

TEST(SpoolCrashTest, KilledProcessLosesNoAcknowledgedResult) {
  SpoolFixture fixture;
  fixture.ops = &PosixFileOps();
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) DeliverUntilKilled(fixture, pipes[1]);
  close(pipes[1]);
  int last = -1;
  int acknowledged = 0;
  while (acknowledged < 40 && read(pipes[0], &last, sizeof(last)) == sizeof(last)) ++acknowledged;
  kill(child, SIGKILL);
  while (read(pipes[0], &last, sizeof(last)) == sizeof(last)) ++acknowledged;
  close(pipes[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  ASSERT_GE(acknowledged, 40);
  ASSERT_TRUE(fixture.Open().ok());
  // One more may be complete, and not acknowledged.
  EXPECT_GE(fixture.spool().waiting(), acknowledged);
  EXPECT_LE(fixture.spool().waiting(), acknowledged + 1);
  for (int i = 0; i < acknowledged; ++i) {
    ASSERT_EQ(fixture.Next(), absl::StrCat("n1/p", i));
    EXPECT_TRUE(fixture.Bytes() == Small());
    fixture.spool().Finish(*fixture.delivery, "committed");
  }
}

}  // namespace
}  // namespace muster
