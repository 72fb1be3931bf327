#include "services/common/store/sqlite/feed.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
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

}  // namespace

void WriteContext::Load() {
  const Bounds changes = BoundsOfChanges(db);
  last_change_ = changes.last;
  first_change_ = changes.first;
  audit.Load();
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
  context.set_first_change(changes.first);
  return context.audit.Prune(step) || more;
}

std::string FeedIdentity(Connection& db) {
  Rows rows = db.Query("SELECT value FROM marks WHERE name = 'feed'");
  return rows.Next() ? rows.Text() : "";
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

}  // namespace muster::sqlite
