#include "services/common/store/sqlite/audit_log.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/schema.h"
#include "services/common/store/sqlite/sqlite_harness.h"

namespace muster::sqlite {
namespace {

class AuditLogTest : public ::testing::Test {
 protected:
  AuditLogTest() {
    EXPECT_TRUE(Migrate(*db_, SchemaSteps()).ok());
    log_.Load();
  }

  // Adds records of many senders.
  void Insert(AuditKind kind, int64_t records) {
    db_->Run(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
        " INSERT INTO audit (at, last_at, kind, actor, run, plugin, node, text)"
        " SELECT i, i, ?, 'sender ' || i, '', '', '', '' FROM n",
        records, kind);
    db_->Run("INSERT OR REPLACE INTO audit_counts VALUES (?, ?)", kind, records);
    log_.Load();
  }

  int64_t Stored(AuditKind kind) {
    Rows rows = db_->Query("SELECT COUNT(*) FROM audit WHERE kind = ?", kind);
    return rows.Next() ? rows.Int() : -1;
  }

  TempFolder folder_;
  std::unique_ptr<Connection> db_ =
      Connection::Open(folder_ / "audit.db", Connection::Access::kReadWrite).value();
  AuditLog log_{*db_};
};

TEST_F(AuditLogTest, RecordsOfSendersDoNotDisplaceThoseOfOperators) {
  AuditRecord revoked;
  revoked.kind = AuditKind::kRevocation;
  log_.Add(revoked);
  const int64_t retained = RetainedAudit(AuditKind::kConflict);
  Insert(AuditKind::kConflict, retained);
  EXPECT_FALSE(log_.IsLong());
  AuditRecord conflict;
  conflict.kind = AuditKind::kConflict;
  conflict.actor = "bad";
  for (int i = 0; i < 5; ++i) log_.Add(conflict);
  EXPECT_TRUE(log_.IsLong());
  EXPECT_TRUE(log_.Prune(3));
  EXPECT_FALSE(log_.Prune(3));
  EXPECT_FALSE(log_.IsLong());
  EXPECT_EQ(Stored(AuditKind::kConflict), retained);
  EXPECT_EQ(Stored(AuditKind::kRevocation), 1);
  EXPECT_TRUE(db_->TakeStatus().ok());
}

// A clock that was too far ahead, and was set back.
TEST_F(AuditLogTest, SinceFindsRecordsInAnyOrderOfTheirTimes) {
  constexpr int64_t kDay = kAuditFold;
  for (const int64_t day : {1, 20, 10, 12}) {
    AuditRecord record;
    record.kind = AuditKind::kRevocation;
    record.at = day * kDay;
    log_.Add(record);
  }
  const auto days_since = [this](int64_t day) {
    std::vector<int64_t> days;
    const auto page = ReadAudit(*db_, {.since = day * kDay}, "", 10);
    EXPECT_TRUE(page.ok()) << page.status();
    for (const AuditRecord& record : page->items) days.push_back(record.at / kDay);
    return days;
  };
  EXPECT_EQ(days_since(11), (std::vector<int64_t>{20, 12}));
  EXPECT_EQ(days_since(2), (std::vector<int64_t>{20, 10, 12}));
  EXPECT_TRUE(days_since(30).empty());
}

TEST_F(AuditLogTest, SinceTheLastRecordIsAnEmptyPage) {
  Insert(AuditKind::kConflict, kAuditScan + 1);
  const auto page = ReadAudit(*db_, {.since = 10 * kAuditFold}, "", 10);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_TRUE(page->items.empty());
  EXPECT_EQ(page->next, "");
}

TEST_F(AuditLogTest, PageExaminesALimitedNumberOfRecords) {
  Insert(AuditKind::kConflict, kAuditScan + 1);
  const AuditFilter filter{.kinds = {AuditKind::kShare, AuditKind::kNode}};
  const auto page = ReadAudit(*db_, filter, "", 10);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_TRUE(page->items.empty());
  ASSERT_NE(page->next, "");
  EXPECT_EQ(ReadAudit(*db_, filter, page->next, 10)->next, "");
}

}  // namespace
}  // namespace muster::sqlite
