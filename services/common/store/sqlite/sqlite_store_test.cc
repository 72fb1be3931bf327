// Tests of SQLite's specifics: locks, versions, files, limits. contract_test.cc tests the
// behaviour, fault_test.cc failures of disk and process.
#include "services/common/store/sqlite/sqlite_store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "services/common/base/error.h"
#include "services/common/store/sqlite/schema.h"
#include "services/common/store/sqlite/sqlite_harness.h"
#include "services/common/store/sqlite/version1_rows.h"

namespace muster {
namespace {

// Runs SQL beside the store, as the sqlite3 tool does; returns the first column.
std::string Sql(const std::string& path, const char* sql) {
  auto db = sqlite::Connection::Open(path, sqlite::Connection::Access::kReadWrite);
  if (!db.ok()) return std::string(db.status().message());
  sqlite::Rows rows = (*db)->Query(sql);
  return rows.Next() ? rows.Text() : "";
}

TEST(SqliteStoreTest, SecondProcessIsRefused) {
  SqliteHarness harness;
  ASSERT_TRUE(harness.Open().ok());
  const absl::Status refused = OpenSqliteStore({.path = harness.path()}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(ReasonOf(refused), "STORE_IN_USE");
  EXPECT_NE(refused.message().find("process"), std::string::npos);
  EXPECT_NE(refused.message().find(harness.path()), std::string::npos);
  harness.Close();
  EXPECT_TRUE(OpenSqliteStore({.path = harness.path()}).ok());
}

TEST(SqliteStoreTest, NewerSchemaIsRefused) {
  SqliteHarness harness;
  ASSERT_TRUE(harness.Open().ok());
  harness.Close();
  Sql(harness.path(), "UPDATE schema_version SET version = 1000");
  const absl::Status refused = harness.Open();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(ReasonOf(refused), "STORE_TOO_NEW");
  EXPECT_EQ(Sql(harness.path(), "SELECT version FROM schema_version"), "1000");
}

TEST(SqliteStoreTest, OlderSchemasAreMigratedStepByStep) {
  TempFolder folder;
  const std::string path = folder / "db";
  auto db = *sqlite::Connection::Open(path, sqlite::Connection::Access::kReadWrite);
  const std::vector<const char*> steps = {"CREATE TABLE a (x)", "ALTER TABLE a ADD COLUMN y",
                                          "CREATE TABLE b (z); INSERT INTO b VALUES (7)"};
  ASSERT_TRUE(sqlite::Migrate(*db, {steps.data(), 1}).ok());
  db->Execute("INSERT INTO a VALUES (1)");
  ASSERT_TRUE(sqlite::Migrate(*db, steps).ok());
  ASSERT_TRUE(sqlite::Migrate(*db, steps).ok());
  EXPECT_EQ(Sql(path, "SELECT x FROM a WHERE y IS NULL"), "1");
  EXPECT_EQ(Sql(path, "SELECT count(*) FROM b"), "1");
  EXPECT_EQ(Sql(path, "SELECT version FROM schema_version"), "3");

  // A step that fails leaves the previous version unchanged.
  std::vector<const char*> bad = steps;
  bad.push_back("CREATE TABLE c (x); INSERT INTO missing VALUES (1)");
  EXPECT_FALSE(sqlite::Migrate(*db, bad).ok());
  EXPECT_EQ(Sql(path, "SELECT version FROM schema_version"), "3");
  EXPECT_EQ(Sql(path, "SELECT count(*) FROM sqlite_schema WHERE name = 'c'"), "0");
}

TEST(SqliteStoreTest, StoreOfVersion1IsMigrated) {
  SqliteHarness harness;
  {
    auto db = *sqlite::Connection::Open(harness.path(), sqlite::Connection::Access::kReadWrite);
    ASSERT_TRUE(sqlite::Migrate(*db, sqlite::SchemaSteps().first(1)).ok());
    db->Execute(sqlite::kVersion1Rows);
    const absl::Status written = db->TakeStatus();
    ASSERT_TRUE(written.ok()) << written;
  }
  const absl::Status opened = harness.Open();
  ASSERT_TRUE(opened.ok()) << opened;
  StateStore& store = harness.state();
  const RunRecord run = (*store.GetRun(kRun))->run;
  EXPECT_EQ(run.title, "a round");
  EXPECT_EQ(run.genuine, 1);
  EXPECT_EQ(run.timed_out, 1);
  EXPECT_EQ(run.listener.port, 30001);
  EXPECT_EQ(run.start_grace, 0);
  EXPECT_EQ(run.lost_after, 180'000'000);
  EXPECT_FALSE(run.fail_fast);
  EXPECT_EQ(run.settled_at, run.deadline_at);
  EXPECT_FALSE(run.status_listener.has_value());
  EXPECT_EQ(run.result_bytes, 1);
  EXPECT_FALSE(run.pinned);
  EXPECT_EQ((*store.GetResult(KeyOf("n1")))->body, "x");
  EXPECT_EQ((*store.GetAuthority(kRun))->self_signed_pem, "self pem");
  EXPECT_EQ(*harness.feed().Last(), 4);
  EXPECT_EQ((*store.GetRun("bbbbbbbbbbbbbbbb"))->run.settled_at, 0);

  // The commands of version 2 work on the data of version 1.
  const auto lost = store.ApplyAndWait(
      TimeOutPair{.key = {"bbbbbbbbbbbbbbbb", "facts", "n1"}, .error = "lost", .at = 8});
  EXPECT_TRUE(lost.ok() && lost->changed) << lost.status();
  const auto set = store.ApplyAndWait(SetStatusListener{.run = kRun});
  EXPECT_TRUE(set.ok() && set->verdict == SetStatusListener::Verdict::kSet) << set.status();
  EXPECT_EQ(Sql(harness.path(), "SELECT version FROM schema_version"),
            absl::StrCat(sqlite::SchemaSteps().size()));
}

TEST(SqliteStoreTest, FilesArePrivate) {
  SqliteHarness harness;
  ASSERT_TRUE(harness.Open().ok());
  ASSERT_TRUE(harness.state().ApplyAndWait(MakeRun(kRun, {{"facts", "n1"}})).ok());
  for (const char* suffix : {"", "-wal", "-shm", ".lock", ".created"}) {
    struct stat info;
    ASSERT_EQ(stat((harness.path() + suffix).c_str(), &info), 0) << suffix;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << suffix;
  }
}

TEST(SqliteStoreTest, CleanStopLeavesNoLog) {
  SqliteHarness harness;
  ASSERT_TRUE(harness.Open().ok());
  ASSERT_TRUE(harness.state().ApplyAndWait(MakeRun(kRun, {{"facts", "n1"}})).ok());
  EXPECT_EQ(Sql(harness.path(), "SELECT value FROM marks WHERE name = 'clean'"), "no");
  harness.Close();
  EXPECT_FALSE(PosixFileOps().Stat(harness.path() + "-wal").ok());
  EXPECT_EQ(Sql(harness.path(), "SELECT value FROM marks WHERE name = 'clean'"), "yes");
}

TEST(SqliteStoreTest, StartDuringAReadTransactionOfAnotherProcessSucceeds) {
  SqliteHarness harness;
  ASSERT_TRUE(harness.Open().ok());
  const auto backup =
      *sqlite::Connection::Open(harness.path(), sqlite::Connection::Access::kReadOnly);
  backup->Execute("BEGIN; SELECT count(*) FROM runs");
  ASSERT_TRUE(backup->TakeStatus().ok());
  ASSERT_TRUE(harness.state().ApplyAndWait(MakeRun(kRun, {{"facts", "n1"}})).ok());
  harness.Close();  // the reader prevents the checkpoint
  ASSERT_GT(PosixFileOps().Stat(harness.path() + "-wal")->size, 0);
  const absl::Status opened = harness.Open();
  ASSERT_TRUE(opened.ok()) << opened;
  EXPECT_TRUE(harness.state().ApplyAndWait(Genuine(KeyOf("n1"), "content")).ok());

  backup->Execute("COMMIT");
  harness.Close();
  ASSERT_TRUE(harness.Open().ok());
  EXPECT_EQ(PosixFileOps().Stat(harness.path() + "-wal")->size, 0);
  EXPECT_EQ((*harness.state().GetResult(KeyOf("n1")))->body, "content");
}

TEST(SqliteStoreTest, DamageIsFoundAfterAnUncleanStop) {
  SqliteHarness harness;
  ASSERT_TRUE(harness.Open().ok());
  std::vector<PlannedPair> pairs;
  for (int i = 0; i < 5000; ++i) pairs.push_back({"facts", absl::StrCat("n", i)});
  ASSERT_TRUE(harness.state().ApplyAndWait(MakeRun(kRun, pairs)).ok());
  harness.Close();
  Sql(harness.path(), "UPDATE marks SET value = 'no'");
  {
    auto file = *PosixFileOps().Open(harness.path(), OpenMode::kReadWrite);
    const int64_t size = *file->Size();
    ASSERT_TRUE(file->WriteAt(std::string(4096, '\xee'), size / 8192 * 4096).ok());
  }
  const absl::Status refused = harness.Open();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_EQ(ReasonOf(refused), "STORE_CORRUPT");
}

// A large database is served while it is checked; damage that the check finds stops the store, and
// every later start is refused.
TEST(SqliteStoreTest, LargeDatabaseIsCheckedWhileItIsServed) {
  std::promise<absl::Status> fatal;
  SqliteHarness harness(
      {.on_fatal = [&](const absl::Status& why) { fatal.set_value(why); }, .checked_at_start = 0});
  ASSERT_TRUE(harness.Open().ok());
  std::vector<PlannedPair> pairs;
  for (int i = 0; i < 4000; ++i) pairs.push_back({"facts", absl::StrCat("n", i)});
  ASSERT_TRUE(harness.state().ApplyAndWait(MakeRun(kRun, pairs)).ok());
  harness.Close();
  const auto is_clean = [&] {
    return Sql(harness.path(), "SELECT value FROM marks WHERE name = 'clean'");
  };
  // A sound database passes, and its next stop is clean.
  Sql(harness.path(), "UPDATE marks SET value = 'no'");
  for (int tries = 0; tries < 10'000 && is_clean() != "yes"; ++tries) {
    ASSERT_TRUE(harness.Open().ok());
    EXPECT_TRUE(harness.state().LiveRuns().ok());
    harness.Close();
  }
  EXPECT_EQ(is_clean(), "yes");

  Sql(harness.path(), "UPDATE marks SET value = 'no'");
  {
    auto file = *PosixFileOps().Open(harness.path(), OpenMode::kReadWrite);
    const int64_t size = *file->Size();
    // A page of the plan: the pages that a start reads are at the beginning.
    ASSERT_TRUE(file->WriteAt(std::string(4096, '\xee'), size / 16384 * 3 * 4096).ok());
  }
  ASSERT_TRUE(harness.Open().ok());
  const absl::Status why = fatal.get_future().get();
  EXPECT_EQ(ReasonOf(why), "STORE_CORRUPT");
  EXPECT_EQ(ReasonOf(harness.state().ApplyAndWait(AppendAudit{}).status()), "STORE_FAILED");
  harness.Close();
  EXPECT_EQ(ReasonOf(harness.Open()), "STORE_CORRUPT");
}

TEST(SqliteStoreTest, FileThatIsNotADatabaseIsRefused) {
  TempFolder folder;
  ASSERT_TRUE(WriteFileDurably(PosixFileOps(), folder / "x.db", std::string(5000, 'x')).ok());
  EXPECT_EQ(ReasonOf(OpenSqliteStore({.path = folder / "x.db"}).status()), "STORE_CORRUPT");
  EXPECT_TRUE(absl::IsNotFound(OpenSqliteStore({.path = folder / "no/x.db"}).status()));
}

TEST(SqliteStoreTest, FullQueueRefusesCommands) {
  SqliteHarness harness({.max_queue = 10});
  ASSERT_TRUE(harness.Open().ok());
  // A callback blocks the store's thread while the queue fills.
  std::promise<void> held, release;
  harness.state().Apply(AppendAudit{}, [&](absl::StatusOr<AppendAudit::Result>) {
    held.set_value();
    release.get_future().wait();
  });
  held.get_future().wait();
  int good = 0, refused = 0;
  std::promise<void> last;
  for (int i = 0; i < 15; ++i) {
    harness.state().Apply(AppendAudit{}, [&](absl::StatusOr<AppendAudit::Result> result) {
      if (result.ok()) {
        if (++good == 10) last.set_value();
        return;
      }
      ++refused;
      EXPECT_TRUE(absl::IsResourceExhausted(result.status()));
      EXPECT_EQ(ReasonOf(result.status()), "STORE_BUSY");
      EXPECT_TRUE(RetryAfterOf(result.status()).has_value());
    });
  }
  EXPECT_EQ(refused, 5);
  EXPECT_EQ(harness.sqlite().stats().queued, 10u);
  release.set_value();
  last.get_future().wait();
  EXPECT_EQ(harness.sqlite().stats().refused, 5u);
}

TEST(SqliteStoreTest, CommandsOfOneTransactionAreBounded) {
  SqliteHarness harness;
  ASSERT_TRUE(harness.Open().ok());
  // A callback blocks the store's thread while the commands gather.
  std::promise<void> held, release;
  harness.state().Apply(AppendAudit{}, [&](absl::StatusOr<AppendAudit::Result>) {
    held.set_value();
    release.get_future().wait();
  });
  held.get_future().wait();
  const uint64_t before = harness.sqlite().stats().batches;
  constexpr int kCommands = 512 + 1;
  std::promise<void> last;
  for (int i = 1; i <= kCommands; ++i) {
    harness.state().Apply(AppendAudit{}, [&, i](absl::StatusOr<AppendAudit::Result> result) {
      EXPECT_TRUE(result.ok()) << result.status();
      if (i == kCommands) last.set_value();
    });
  }
  release.set_value();
  last.get_future().wait();
  EXPECT_EQ(harness.sqlite().stats().batches - before, 2u);
}

TEST(SqliteStoreTest, LimitOfTheFileIsADiskFullError) {
  SqliteHarness harness({.max_file_bytes = 1 << 20});
  ASSERT_TRUE(harness.Open().ok());
  std::vector<PlannedPair> pairs;
  for (int i = 0; i < 100; ++i) pairs.push_back({"facts", absl::StrCat("n", i)});
  ASSERT_TRUE(harness.state().ApplyAndWait(MakeRun(kRun, pairs)).ok());
  ::testing::internal::CaptureStderr();  // the log
  absl::Status full;
  int64_t kept = 0;
  for (; full.ok() && kept < 100; ++kept) {
    const std::string body(60'000, 'x');
    full = harness.state().ApplyAndWait(Genuine(KeyOf(absl::StrCat("n", kept)), body)).status();
  }
  --kept;
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("path=" + harness.path()), std::string::npos) << log;
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_EQ(ReasonOf(full), "DISK_FULL");
  EXPECT_EQ(full.message().find(harness.path()), std::string::npos)
      << full;  // clients get this message
  EXPECT_EQ((*harness.state().GetRun(kRun))->run.genuine, kept);
  // Small changes still fit, and deleting frees space.
  ASSERT_TRUE(harness.state().ApplyAndWait(EndRun{.run = kRun, .state = RunState::kFailed}).ok());
  ASSERT_TRUE(harness.state().ApplyAndWait(DeleteRun{.run = kRun}).ok());
  absl::Status again;
  for (int tries = 0; tries < 1000; ++tries) {
    again = harness.state().ApplyAndWait(MakeRun(kRun, pairs)).status();
    if (!absl::IsResourceExhausted(again)) break;
  }
  EXPECT_TRUE(again.ok()) << again;
}

TEST(SqliteStoreTest, DeletedRunReturnsItsSpaceToTheDisk) {
  SqliteHarness harness;
  ASSERT_TRUE(harness.Open().ok());
  std::vector<PlannedPair> pairs;
  for (int i = 0; i < 500; ++i) pairs.push_back({"facts", absl::StrCat("n", i)});
  ASSERT_TRUE(harness.state().ApplyAndWait(MakeRun(kRun, pairs)).ok());
  for (int i = 0; i < 500; ++i) {
    const std::string body(60'000, 'x');
    ASSERT_TRUE(harness.state().ApplyAndWait(Genuine(KeyOf(absl::StrCat("n", i)), body)).ok());
  }
  ASSERT_TRUE(harness.state().ApplyAndWait(EndRun{.run = kRun, .state = RunState::kFailed}).ok());
  ASSERT_TRUE(harness.state().ApplyAndWait(DeleteRun{.run = kRun}).ok());
  // The end of the store waits for no housekeeping: the next start continues it.
  int64_t size = 0;
  for (int starts = 0; starts < 200; ++starts) {
    harness.Close();
    size = PosixFileOps().Stat(harness.path())->size;
    if (size < 8 << 20) break;
    ASSERT_TRUE(harness.Open().ok());
    Sql(harness.path(), "SELECT count(*) FROM bodies");
  }
  EXPECT_LT(size, 8 << 20);
}

TEST(SqliteStoreTest, DeletedRunLeavesNoRows) {
  SqliteHarness harness;
  ASSERT_TRUE(harness.Open().ok());
  std::vector<PlannedPair> pairs;
  for (int i = 0; i < 10'000; ++i) pairs.push_back({"facts", absl::StrCat("n", i)});
  ASSERT_TRUE(harness.state().ApplyAndWait(MakeRun(kRun, pairs)).ok());
  ASSERT_TRUE(harness.state().ApplyAndWait(Failed(KeyOf("n1"), "x")).ok());
  ASSERT_TRUE(harness.state().ApplyAndWait(Genuine(KeyOf("n1"), "x")).ok());
  ASSERT_TRUE(harness.state().ApplyAndWait(TimeOutRun{.run = kRun, .error = "late"}).ok());
  ASSERT_TRUE(harness.state().ApplyAndWait(EndRun{.run = kRun, .state = RunState::kFailed}).ok());
  ASSERT_TRUE(harness.state().ApplyAndWait(DeleteRun{.run = kRun}).ok());
  harness.Close();  // most likely during the removal
  ASSERT_TRUE(harness.Open().ok());
  std::string left;
  for (int tries = 0; tries < 10'000; ++tries) {
    left = Sql(harness.path(),
               "SELECT (SELECT count(*) FROM pairs) + (SELECT count(*) FROM results) +"
               " (SELECT count(*) FROM bodies) + (SELECT count(*) FROM deleted_runs)");
    if (left == "0") break;
  }
  EXPECT_EQ(left, "0");
}

// Removes the pairs of a creation that a crash interrupted.
TEST(SqliteStoreTest, RowsOfAnInterruptedPlanAreRemoved) {
  SqliteHarness harness;
  ASSERT_TRUE(harness.Open().ok());
  harness.Close();
  Sql(harness.path(), "INSERT INTO deleted_runs VALUES ('00112233445566aa')");
  Sql(harness.path(), "INSERT INTO pairs VALUES ('00112233445566aa', 'facts', 'n1', 0, 0, 0, 0)");
  ASSERT_TRUE(harness.Open().ok());
  EXPECT_FALSE(*harness.state().IsPlanned(KeyOf("n1")));
  std::string left;
  for (int tries = 0; tries < 10'000; ++tries) {
    left = Sql(harness.path(),
               "SELECT (SELECT count(*) FROM pairs) + (SELECT count(*) FROM deleted_runs)");
    if (left == "0") break;
  }
  EXPECT_EQ(left, "0");
}

}  // namespace
}  // namespace muster
