// A start that migrates a database of version 1, killed at each of its changes of the disk: the
// next start continues, and all rows are present.
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/fault_vfs.h"
#include "services/common/store/sqlite/schema.h"
#include "services/common/store/sqlite/sqlite_harness.h"
#include "services/common/store/sqlite/sqlite_store.h"
#include "services/common/store/sqlite/version1_rows.h"

namespace muster::sqlite {
namespace {

// Enough rows that a migration changes several pages.
constexpr const char* kManyRows = R"sql(
WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
INSERT INTO audit SELECT i, i, 3, 'actor', 'run', '', '', 'refused ' || i FROM n;
)sql";

// Writes a database of version 1.
void WriteVersion1(const std::string& path) {
  const auto db = Connection::Open(path, Connection::Access::kReadWrite).value();
  ASSERT_TRUE(Migrate(*db, SchemaSteps().first(1)).ok());
  db->Execute(kVersion1Rows);
  db->Execute(kManyRows);
  const absl::Status written = db->TakeStatus();
  ASSERT_TRUE(written.ok()) << written;
}

int Append(void* into, int columns, char** values, char** /*names*/) {
  auto& text = *static_cast<std::string*>(into);
  for (int i = 0; i < columns; ++i) absl::StrAppend(&text, values[i] ? values[i] : "NULL", "|");
  text += '\n';
  return 0;
}

std::string Print(Connection& db, const std::string& sql) {
  std::string text;
  EXPECT_EQ(sqlite3_exec(db.handle(), sql.c_str(), &Append, &text, nullptr), SQLITE_OK) << sql;
  return text;
}

// Returns the schema, and the rows of each table. The marks are those of the last start.
std::map<std::string, std::string> Content(const std::string& path) {
  const auto db = Connection::Open(path, Connection::Access::kReadOnly).value();
  std::map<std::string, std::string> content;
  content["schema"] = Print(*db, "SELECT name, sql FROM sqlite_schema ORDER BY name");
  Rows tables =
      db->Query("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'marks'");
  while (tables.Next()) {
    const std::string table = tables.Text();
    content[table] = Print(*db, absl::StrCat("SELECT * FROM ", table, " ORDER BY 1"));
  }
  return content;
}

// Starts the store in another process, which is killed before its n-th change of the disk. Returns
// whether it was killed.
bool StartAndKillAt(const std::string& path, int n) {
  const pid_t child = fork();
  if (child == 0) {
    FaultVfs vfs;
    int changes = 0;
    vfs.BeforeChange([&changes, n] {
      if (++changes == n) kill(getpid(), SIGKILL);
    });
    const auto store = OpenSqliteStore({.path = path});
    _exit(store.ok() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "change " << n;
  return WIFSIGNALED(status);
}

// Returns 0 if the next start has to undo a transaction before the database can be read.
int64_t VersionOf(const std::string& path) {
  const auto db = Connection::Open(path, Connection::Access::kReadOnly).value();
  Rows rows = db->Query("SELECT version FROM schema_version");
  return rows.Next() ? rows.Int() : 0;
}

TEST(MigrationTest, ContinuesAfterAKillAtEachChange) {
  const TempFolder folder;
  const std::string old = folder / "old.db", path = folder / "state.db";
  WriteVersion1(old);
  const auto copy = [&] {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
    std::filesystem::copy_file(old, path);
  };
  copy();
  ASSERT_TRUE(OpenSqliteStore({.path = path}).ok());
  const auto wanted = Content(path);
  ASSERT_EQ(VersionOf(path), static_cast<int64_t>(SchemaSteps().size()));

  std::map<int64_t, int> killed_at;  // by the version at that moment
  for (int n = 1;; ++n) {
    SCOPED_TRACE(absl::StrCat("killed before change ", n));
    copy();
    if (!StartAndKillAt(path, n)) break;
    ++killed_at[VersionOf(path)];
    StartAndKillAt(path, 1 + n % 23);  // also what continues is killed
    const auto store = OpenSqliteStore({.path = path});
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*(*store)->GetRun("00112233445566aa"))->run.title, "a round");
    ASSERT_EQ(Content(path), wanted);
  }
  // Kills happened before the first step, and after each.
  killed_at.erase(0);
  EXPECT_EQ(killed_at.size(), SchemaSteps().size());
}

}  // namespace
}  // namespace muster::sqlite
