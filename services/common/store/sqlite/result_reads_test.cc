#include <gtest/gtest.h>
#include <sqlite3.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/results.h"
#include "services/common/store/sqlite/sqlite_harness.h"

namespace muster {
namespace {

constexpr int kNodes = 2000;

// Returns the steps of SQLite's virtual machine that all statements of the connection took.
int64_t StepsOf(sqlite::Connection& db) {
  int64_t steps = 0;
  for (sqlite3_stmt* statement = nullptr;
       (statement = sqlite3_next_stmt(db.handle(), statement)) != nullptr;) {
    steps += sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 0);
  }
  return steps;
}

TEST(ResultReadsTest, ResultsOfANodeAreFoundWithoutAScanOfTheRun) {
  SqliteHarness harness;
  ASSERT_TRUE(harness.Open().ok());
  std::vector<PlannedPair> pairs;
  for (int i = 0; i < kNodes; ++i) pairs.push_back({"facts", absl::StrCat("n", i)});
  pairs.push_back({"e2e", "n7"});
  ASSERT_TRUE(harness.state().ApplyAndWait(MakeRun(kRun, std::move(pairs))).ok());
  const auto db = *sqlite::Connection::Open(harness.path(), sqlite::Connection::Access::kReadOnly);
  const auto page =
      sqlite::ReadResults(*db, {.run = kRun, .node = "n7", .with_pending = true}, "", 1000);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->items.size(), 2u);
  EXPECT_EQ(page->items[0].key.plugin, "e2e");
  EXPECT_EQ(page->items[1].key.plugin, "facts");
  EXPECT_LT(StepsOf(*db), kNodes);
}

}  // namespace
}  // namespace muster
