#include "services/common/store/sqlite/audit_log.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/errors/runs.h"

namespace muster::sqlite {
namespace {

// Both ends are excluded.
struct Range {
  int64_t low = 0;
  int64_t high = std::numeric_limits<int64_t>::max();
};

// The statements of a listing: literals, because a connection caches them by address.
#define MUSTER_AUDIT_QUERY(where, order)                                                    \
  "SELECT sequence, at, last_at, count, kind, actor, vouched_by, run, plugin, node, text, " \
  "subject FROM audit"                                                                      \
  " WHERE " where " sequence > ? AND sequence < ? ORDER BY sequence " order " LIMIT ?"

// Opens the query by the most selective filter; `Matches` applies the others.
Rows OpenQuery(Connection& db, const AuditFilter& filter, const Range& range) {
  const auto [low, high] = range;
  if (!filter.run.empty()) {
    return filter.newest_first ? db.Query(MUSTER_AUDIT_QUERY("run = ? AND", "DESC"), filter.run,
                                          low, high, kAuditScan)
                               : db.Query(MUSTER_AUDIT_QUERY("run = ? AND", "ASC"), filter.run, low,
                                          high, kAuditScan);
  }
  if (!filter.subject.empty()) {
    return filter.newest_first
               ? db.Query(MUSTER_AUDIT_QUERY("subject = ? AND subject <> '' AND", "DESC"),
                          filter.subject, low, high, kAuditScan)
               : db.Query(MUSTER_AUDIT_QUERY("subject = ? AND subject <> '' AND", "ASC"),
                          filter.subject, low, high, kAuditScan);
  }
  if (!filter.actor.empty()) {
    return filter.newest_first ? db.Query(MUSTER_AUDIT_QUERY("actor = ? AND", "DESC"), filter.actor,
                                          low, high, kAuditScan)
                               : db.Query(MUSTER_AUDIT_QUERY("actor = ? AND", "ASC"), filter.actor,
                                          low, high, kAuditScan);
  }
  if (filter.kinds.size() == 1) {
    const AuditKind kind = filter.kinds.front();
    return filter.newest_first
               ? db.Query(MUSTER_AUDIT_QUERY("kind = ? AND", "DESC"), kind, low, high, kAuditScan)
               : db.Query(MUSTER_AUDIT_QUERY("kind = ? AND", "ASC"), kind, low, high, kAuditScan);
  }
  return filter.newest_first ? db.Query(MUSTER_AUDIT_QUERY("", "DESC"), low, high, kAuditScan)
                             : db.Query(MUSTER_AUDIT_QUERY("", "ASC"), low, high, kAuditScan);
}

#undef MUSTER_AUDIT_QUERY

bool Matches(const AuditFilter& filter, const AuditRecord& record) {
  return (filter.run.empty() || record.key.run == filter.run) &&
         (filter.actor.empty() || record.actor == filter.actor) &&
         (filter.subject.empty() || record.subject == filter.subject) &&
         (filter.kinds.empty() || std::ranges::count(filter.kinds, record.kind) > 0) &&
         record.last_at >= filter.since && (filter.until == 0 || record.at < filter.until);
}

AuditRecord ParseRecord(Rows& rows) {
  AuditRecord record;
  record.sequence = rows.Int();
  record.at = rows.Int();
  record.last_at = rows.Int();
  record.count = rows.Int();
  record.kind = rows.Enum<AuditKind>();
  record.actor = rows.Text();
  record.vouched_by = rows.Text();
  record.key.run = rows.Text();
  record.key.plugin = rows.Text();
  record.key.node = rows.Text();
  record.text = rows.Text();
  record.subject = rows.Text();
  return record;
}

// Returns the sequence before the first record of `since`, so that earlier ones are not examined;
// the largest number if there is none. Times may decrease, because a clock is set back. Without the
// index, SQLite would read all earlier records.
int64_t SequenceBefore(Connection& db, int64_t since) {
  Rows rows =
      db.Query("SELECT min(sequence) FROM audit INDEXED BY audit_by_time WHERE at >= ?", since);
  const int64_t first = rows.Next() ? rows.Int() : 0;
  return first > 0 ? first - 1 : std::numeric_limits<int64_t>::max();
}

// An equal record is looked up among this many of the newest ones of the pair.
constexpr int kFoldAmong = 16;

constexpr size_t IndexOf(AuditKind kind) { return static_cast<size_t>(kind) % 32; }

// Returns the sequence of an equal record among the newest ones of the pair; 0: none.
int64_t FindEqualOfPair(Connection& db, const AuditRecord& record) {
  Rows rows = db.Query(
      "SELECT sequence FROM (SELECT sequence, at, actor, vouched_by, text FROM audit WHERE run = ?"
      " AND plugin = ? AND node = ? AND kind = ? AND plugin <> '' ORDER BY sequence DESC LIMIT ?)"
      " WHERE at > ? AND actor = ? AND vouched_by = ? AND text = ? LIMIT 1",
      record.key.run, record.key.plugin, record.key.node, record.kind, kFoldAmong,
      record.at - kAuditFold, record.actor, record.vouched_by, record.text);
  return rows.Next() ? rows.Int() : 0;
}

// Returns the sequence of the actor's newest record if it is equal; 0: it is not.
int64_t FindEqualOfActor(Connection& db, const AuditRecord& record) {
  Rows rows = db.Query(
      "SELECT sequence FROM (SELECT * FROM audit WHERE actor = ? ORDER BY sequence DESC LIMIT 1)"
      " WHERE at > ? AND kind = ? AND run = ? AND plugin = ? AND node = ? AND text = ?"
      " AND subject = ? AND vouched_by = ?",
      record.actor, record.at - kAuditFold, record.kind, record.key.run, record.key.plugin,
      record.key.node, record.text, record.subject, record.vouched_by);
  return rows.Next() ? rows.Int() : 0;
}

// The refusals of an actor within kAuditFold.
struct Refusals {
  int64_t since = 0;
  int64_t records = 0;
  int64_t last = 0;
};

Refusals RefusalsOf(Connection& db, const std::string& actor, int64_t now) {
  Refusals refusals{.since = now};
  Rows rows = db.Query("SELECT since, records, last FROM audit_actors WHERE actor = ?", actor);
  if (!rows.Next()) return refusals;
  const int64_t since = rows.Int();
  if (now >= since + kAuditFold || now < since - kAuditFold) return refusals;
  refusals.since = since;
  refusals.records = rows.Int();
  refusals.last = rows.Int();
  return refusals;
}

void StoreRefusals(Connection& db, const std::string& actor, const Refusals& refusals) {
  // The store has no clock: the time of each refusal determines which actors are old.
  db.Run(
      "DELETE FROM audit_actors WHERE actor IN"
      " (SELECT actor FROM audit_actors WHERE since < ? ORDER BY since LIMIT 4)",
      refusals.since - 2 * kAuditFold);
  db.Run("INSERT OR REPLACE INTO audit_actors (actor, since, records, last) VALUES (?, ?, ?, ?)",
         actor, refusals.since, refusals.records, refusals.last);
}

}  // namespace

void AuditLog::Load() {
  Rows rows = db_.Query("SELECT kind, records FROM audit_counts");
  while (rows.Next()) {
    const auto kind = rows.Enum<AuditKind>();
    records_[IndexOf(kind)] = rows.Int();
  }
}

void AuditLog::Add(const AuditRecord& record) {
  db_.Run(
      "INSERT INTO audit (at, last_at, kind, actor, vouched_by, run, plugin, node, text, subject)"
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      record.at, record.at, record.kind, record.actor, record.vouched_by, record.key.run,
      record.key.plugin, record.key.node, record.text, record.subject);
  db_.Run(
      "INSERT INTO audit_counts VALUES (?, 1) ON CONFLICT (kind) DO UPDATE SET"
      " records = records + 1",
      record.kind);
  ++records_[IndexOf(record.kind)];
}

void AuditLog::Count(int64_t sequence, int64_t at) {
  db_.Run("UPDATE audit SET count = count + 1, last_at = max(last_at, ?) WHERE sequence = ?", at,
          sequence);
}

void AuditLog::AddRefusal(const AuditRecord& record) {
  // The quota comes first, because it needs less work than the search.
  Refusals refusals = RefusalsOf(db_, record.actor, record.at);
  if (refusals.records >= kMaxRefusals) return Count(refusals.last, record.at);
  const int64_t equal =
      record.key.plugin.empty() ? FindEqualOfActor(db_, record) : FindEqualOfPair(db_, record);
  if (equal != 0) return Count(equal, record.at);
  AuditRecord kept = record;
  if (++refusals.records == kMaxRefusals) {
    kept.text += "; further refusals of this sender within a day are only counted here";
  }
  Add(kept);
  refusals.last = db_.last_id();
  StoreRefusals(db_, record.actor, refusals);
}

void AuditLog::AddOrCount(const AuditRecord& record) {
  if (const int64_t equal = FindEqualOfActor(db_, record); equal != 0) {
    return Count(equal, record.at);
  }
  Add(record);
}

bool AuditLog::HasOfSubject(const AuditRecord& record) {
  Rows rows = db_.Query(
      "SELECT 1 FROM audit WHERE subject = ? AND subject <> '' AND kind = ? AND actor = ?"
      " AND text = ? LIMIT 1",
      record.subject, record.kind, record.actor, record.text);
  return rows.Next();
}

bool AuditLog::IsLong() const {
  for (size_t kind = 0; kind < records_.size(); ++kind) {
    if (records_[kind] > RetainedAudit(static_cast<AuditKind>(kind))) return true;
  }
  return false;
}

bool AuditLog::Prune(int64_t step) {
  Load();
  bool more = false;
  for (size_t index = 0; index < records_.size(); ++index) {
    const auto kind = static_cast<AuditKind>(index);
    const int64_t excess = records_[index] - RetainedAudit(kind);
    if (excess <= 0) continue;
    const int64_t removed = std::min(excess, step);
    db_.Run(
        "DELETE FROM audit WHERE sequence IN"
        " (SELECT sequence FROM audit WHERE kind = ? ORDER BY sequence LIMIT ?)",
        kind, removed);
    db_.Run("UPDATE audit_counts SET records = records - ? WHERE kind = ?", removed, kind);
    records_[index] -= removed;
    more = more || removed < excess;
  }
  return more;
}

absl::StatusOr<Page<AuditRecord>> ReadAudit(Connection& db, const AuditFilter& filter,
                                            std::string_view page_token, int limit) {
  int64_t token = 0;
  const char* end = page_token.data() + page_token.size();
  if (!page_token.empty() && std::from_chars(page_token.data(), end, token).ptr != end) {
    return errors::InvalidPageToken();
  }
  Range range{.low = filter.after};
  const bool first_page = page_token.empty();
  if (!first_page && !filter.newest_first) {
    range.low = std::max(range.low, token);  // after the first record of `since`
  } else if (filter.since > kAuditFold) {
    range.low = std::max(range.low, SequenceBefore(db, filter.since - kAuditFold));
  }
  if (!first_page && filter.newest_first) range.high = token;
  const auto wanted = static_cast<size_t>(std::clamp(limit, 1, 10'000));
  Page<AuditRecord> page;
  int64_t last = 0;
  int examined = 0;
  Rows rows = OpenQuery(db, filter, range);
  while (page.items.size() < wanted && rows.Next()) {
    AuditRecord record = ParseRecord(rows);
    ++examined;
    last = record.sequence;
    if (Matches(filter, record)) page.items.push_back(std::move(record));
  }
  if (page.items.size() == wanted || examined == kAuditScan) page.next = absl::StrCat(last);
  return page;
}

}  // namespace muster::sqlite
