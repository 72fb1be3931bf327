#include "services/common/store/sqlite/feed.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "services/common/errors/runs.h"
#include "services/common/errors/store.h"

namespace muster::sqlite {

namespace {

// The first and the last sequence of a log; 0 if it is empty.
struct Bounds {
  int64_t first = 0;
  int64_t last = 0;
};

Bounds BoundsOfChanges(Connection& db) {
  Rows rows =
      db.Query("SELECT (SELECT min(sequence) FROM changes), (SELECT max(sequence) FROM changes)");
  return rows.Next() ? Bounds{rows.Int(), rows.Int()} : Bounds{};
}

Bounds BoundsOfAudit(Connection& db) {
  Rows rows =
      db.Query("SELECT (SELECT min(sequence) FROM audit), (SELECT max(sequence) FROM audit)");
  return rows.Next() ? Bounds{rows.Int(), rows.Int()} : Bounds{};
}

}  // namespace

void WriteContext::Load() {
  const Bounds changes = BoundsOfChanges(db);
  const Bounds audit = BoundsOfAudit(db);
  last_change_ = changes.last;
  SetPruned(changes.first, audit.last - audit.first + 1);
}

int64_t WriteContext::AddChange(const ChangeRecord& change) {
  ++last_change_;
  db.Run(
      "INSERT INTO changes (sequence, at, kind, run, plugin, node, outcome, generation, size, text)"
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      last_change_, change.at, change.kind, change.run, change.plugin, change.node, change.outcome,
      change.generation, change.size, change.text);
  return last_change_;
}

int64_t WriteContext::ReserveSequences(int64_t count) {
  const int64_t before = last_change_;
  last_change_ += count;
  return before;
}

void WriteContext::AddAudit(const AuditRecord& record) {
  ++audits_;
  db.Run(
      "INSERT INTO audit (at, kind, actor, run, plugin, node, text) VALUES (?, ?, ?, ?, ?, ?, ?)",
      record.at, record.kind, record.actor, record.key.run, record.key.plugin, record.key.node,
      record.text);
}

void WriteContext::AddRefusal(const AuditRecord& record) {
  {
    Rows same = db.Query(
        "SELECT 1 FROM audit WHERE run = ? AND plugin = ? AND node = ? AND kind = ?"
        " AND actor = ? AND text = ? AND plugin <> '' LIMIT 1",
        record.key.run, record.key.plugin, record.key.node, record.kind, record.actor, record.text);
    if (same.Next()) return;
  }
  int64_t refusals = 0;
  {
    Rows rows = db.Query("UPDATE runs SET refusals = refusals + 1 WHERE id = ? RETURNING refusals",
                         record.key.run);
    while (rows.Next()) refusals = rows.Int();
  }
  if (refusals > kMaxRefusals) return;
  AuditRecord kept = record;
  if (refusals == kMaxRefusals) kept.text += "; further refusals of this run are not recorded";
  AddAudit(kept);
}

bool PruneFeed(WriteContext& context, int64_t retained, int64_t step) {
  Connection& db = context.db;
  bool more = false;
  Bounds changes = BoundsOfChanges(db);
  if (const int64_t keep_from = context.last_change() - retained + 1;
      changes.first > 0 && changes.first < keep_from) {
    const int64_t until = std::min(keep_from, changes.first + step);
    db.Run("DELETE FROM changes WHERE sequence < ?", until);
    changes.first = until;
    more = until < keep_from;
  }
  Bounds audit = BoundsOfAudit(db);
  if (const int64_t keep_from = audit.last - kRetainedAudit + 1;
      audit.first > 0 && audit.first < keep_from) {
    const int64_t until = std::min(keep_from, audit.first + step);
    db.Run("DELETE FROM audit WHERE sequence < ?", until);
    audit.first = until;
    more = more || until < keep_from;
  }
  context.SetPruned(changes.first, audit.last - audit.first + 1);
  return more;
}

int64_t LastChange(Connection& db) {
  Rows rows = db.Query("SELECT sequence FROM changes ORDER BY sequence DESC LIMIT 1");
  return rows.Next() ? rows.Int() : 0;
}

absl::StatusOr<std::vector<ChangeRecord>> ReadChanges(Connection& db, int64_t after, int limit) {
  const int64_t last = LastChange(db);
  if (db.failed()) return db.TakeStatus();
  if (after < 0 || after > last) {
    return errors::CursorUnknown(last, after);
  }
  std::vector<ChangeRecord> changes;
  Rows rows = db.Query(
      "SELECT sequence, at, kind, run, plugin, node, outcome, generation, size, text FROM changes"
      " WHERE sequence > ? ORDER BY sequence LIMIT ?",
      after, std::clamp(limit, 0, 10'000));
  while (rows.Next()) {
    ChangeRecord change;
    change.sequence = rows.Int();
    change.at = rows.Int();
    change.kind = rows.Enum<ChangeKind>();
    change.run = rows.Text();
    change.plugin = rows.Text();
    change.node = rows.Text();
    change.outcome = rows.Enum<Outcome>();
    change.generation = rows.Int();
    change.size = rows.Int();
    change.text = rows.Text();
    changes.push_back(std::move(change));
  }
  if (!changes.empty() && changes.front().sequence != after + 1) {
    return errors::CursorCompacted(changes.front().sequence, after);
  }
  return changes;
}

absl::StatusOr<Page<AuditRecord>> ReadAudit(Connection& db, std::string_view run,
                                            std::string_view page_token, int limit) {
  int64_t after = 0;
  const char* end = page_token.data() + page_token.size();
  if (!page_token.empty() && std::from_chars(page_token.data(), end, after).ptr != end) {
    return errors::InvalidPageToken();
  }
  limit = std::clamp(limit, 1, 10'000);
  Page<AuditRecord> page;
  const auto read = [&](Rows& rows) {
    while (rows.Next()) {
      AuditRecord record;
      record.sequence = rows.Int();
      record.at = rows.Int();
      record.kind = rows.Enum<AuditKind>();
      record.actor = rows.Text();
      record.key.run = rows.Text();
      record.key.plugin = rows.Text();
      record.key.node = rows.Text();
      record.text = rows.Text();
      page.items.push_back(std::move(record));
    }
  };
  if (run.empty()) {
    Rows rows = db.Query(
        "SELECT sequence, at, kind, actor, run, plugin, node, text FROM audit"
        " WHERE sequence > ? ORDER BY sequence LIMIT ?",
        after, limit);
    read(rows);
  } else {
    Rows rows = db.Query(
        "SELECT sequence, at, kind, actor, run, plugin, node, text FROM audit"
        " WHERE run = ? AND sequence > ? ORDER BY sequence LIMIT ?",
        run, after, limit);
    read(rows);
  }
  if (static_cast<int>(page.items.size()) == limit) {
    page.next = absl::StrCat(page.items.back().sequence);
  }
  return page;
}

}  // namespace muster::sqlite
