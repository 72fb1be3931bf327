#include "services/common/store/sqlite/backup.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/schema.h"
#include "services/common/store/sqlite/sqlite_harness.h"

namespace muster::sqlite {
namespace {

constexpr int kNodes = 400;

class BackupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(harness_.Open().ok());
    std::vector<PlannedPair> pairs;
    for (int i = 0; i < kNodes; ++i) pairs.push_back({"facts", absl::StrCat("n", i)});
    ASSERT_TRUE(harness_.state().ApplyAndWait(MakeRun(kRun, pairs)).ok());
  }

  void Commit(CommitResult command) {
    ASSERT_TRUE(harness_.state().ApplyAndWait(std::move(command)).ok());
  }

  // Opens a copy as a store.
  static std::unique_ptr<SqliteHarness> OpenCopy(const std::string& path) {
    auto copy = std::make_unique<SqliteHarness>();
    copy->options().path = path;
    const absl::Status opened = copy->Open();
    EXPECT_TRUE(opened.ok()) << opened;
    return copy;
  }

  TempFolder folder_;
  SqliteHarness harness_;
};

TEST_F(BackupTest, CopyMadeDuringCommitsIsOneConsistentState) {
  std::atomic<int> committed = 0;
  std::jthread writer([&] {
    for (int i = 0; i < kNodes; ++i) {
      Commit(Genuine(KeyOf(absl::StrCat("n", i)), absl::StrCat("content ", i)));
      committed = i + 1;
    }
  });
  for (int copies = 0; committed < kNodes; ++copies) {
    const std::string path = folder_ / absl::StrCat("copy", copies);
    const int before = committed;
    const absl::Status copied = CopyDatabase(harness_.path(), path);
    ASSERT_TRUE(copied.ok()) << copied;
    const auto copy = OpenCopy(path);
    const auto view = copy->state().GetRun(kRun);
    ASSERT_TRUE(view.ok() && view->has_value()) << view.status();
    const RunRecord& run = (*view)->run;
    EXPECT_GE(run.genuine, before);
    EXPECT_EQ(run.genuine + run.pending, kNodes);
    for (int i = 0; i < kNodes; ++i) {
      const auto result = copy->state().GetResult(KeyOf(absl::StrCat("n", i)));
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(*result && (*result)->outcome == Outcome::kGenuine, i < run.genuine) << i;
    }
  }
}

TEST_F(BackupTest, CopyIsReadableByItsOwnerAlone) {
  ASSERT_TRUE(CopyDatabase(harness_.path(), folder_ / "copy").ok());
  struct stat info = {};
  ASSERT_EQ(::stat((folder_ / "copy").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_TRUE(absl::IsAlreadyExists(CopyDatabase(harness_.path(), folder_ / "copy")));
}

TEST_F(BackupTest, RecordedBlobsAreThoseOfRunsThatExist) {
  CommitResult large = Genuine(KeyOf("n1"), "content");
  large.result.body.clear();
  large.result.blob = "runs/a/results/1";
  const std::string sha256 = large.result.sha256;
  Commit(large);
  Commit(Genuine(KeyOf("n2"), "small"));
  constexpr char kDeleted[] = "bbbbbbbbbbbbbbbb";
  ASSERT_TRUE(harness_.state().ApplyAndWait(MakeRun(kDeleted, {{"facts", "n1"}})).ok());
  large.result.key.run = kDeleted;
  large.result.blob = "runs/b/results/1";
  Commit(large);
  ASSERT_TRUE(
      harness_.state().ApplyAndWait(EndRun{.run = kDeleted, .state = RunState::kCancelled}).ok());
  ASSERT_TRUE(harness_.state().ApplyAndWait(DeleteRun{.run = kDeleted}).ok());
  ASSERT_TRUE(CopyDatabase(harness_.path(), folder_ / "copy").ok());
  const std::map<std::string, RecordedBlob> want = {
      {"runs/a/results/1", {.sha256 = sha256, .run = kRun, .plugin = "facts", .node = "n1"}}};
  EXPECT_EQ(*RecordedBlobs(folder_ / "copy"), want);
}

TEST_F(BackupTest, RestoredFeedHasAnotherIdentityAndContinues) {
  ASSERT_TRUE(CopyDatabase(harness_.path(), folder_ / "copy").ok());
  EXPECT_EQ(OpenCopy(folder_ / "copy")->feed().Identity(), harness_.feed().Identity());
  ASSERT_TRUE(RenewFeed(folder_ / "copy").ok());
  const auto restored = OpenCopy(folder_ / "copy");
  EXPECT_NE(restored->feed().Identity(), harness_.feed().Identity());
  EXPECT_EQ(restored->feed().Read(0, 100)->size(), harness_.feed().Read(0, 100)->size());
}

// A backup during an upgrade copies the database of the earlier program.
TEST(RestoreTest, DatabaseOfAnEarlierSchemaIsMigratedAndKeepsItsRenewedFeed) {
  SqliteHarness harness;
  std::string identity;
  {
    const auto db = *Connection::Open(harness.path(), Connection::Access::kReadWrite);
    ASSERT_TRUE(Migrate(*db, SchemaSteps().first(5)).ok());
    ASSERT_TRUE(RenewFeed(harness.path()).ok());
    Rows rows = db->Query("SELECT value FROM marks WHERE name = 'feed'");
    ASSERT_TRUE(rows.Next());
    identity = rows.Text();
  }
  const absl::Status opened = harness.Open();
  ASSERT_TRUE(opened.ok()) << opened;
  EXPECT_EQ(*harness.feed().Identity(), identity);
}

}  // namespace
}  // namespace muster::sqlite
