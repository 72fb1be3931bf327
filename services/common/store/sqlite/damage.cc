#include "services/common/store/sqlite/damage.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/store/sqlite/page_token.h"
#include "services/common/store/sqlite/results.h"
#include "services/common/store/sqlite/runs.h"

namespace muster::sqlite {
namespace {

constexpr char kScrubMark[] = "scrub";
constexpr int kMaxPage = 1'000;

// The damaged results whose nodes are asked for them: genuine ones, also of sealed runs.
#define MUSTER_REDELIVERIES                                                                  \
  " FROM damaged AS d JOIN pairs AS p ON p.run = d.run AND p.plugin = d.plugin"              \
  " AND p.node = d.node AND p.generation = d.generation AND p.outcome = 1 JOIN runs AS r ON" \
  " r.id = d.run AND r.state NOT IN (5, 6) WHERE d.plugin <> ''"
static_assert(static_cast<int>(Outcome::kGenuine) == 1 &&
              static_cast<int>(RunState::kFailed) == 5 &&
              static_cast<int>(RunState::kCancelled) == 6);

// Returns true if the command describes the current bytes of a result, or the archive of a complete
// run, which never changes.
bool IsCurrent(Connection& db, const RecordDamage& command) {
  const ResultKey& key = command.key;
  if (key.plugin.empty()) {
    const auto run = FindRun(db, key.run);
    return run && run->state == RunState::kComplete;
  }
  const auto pair = FindPair(db, key);
  if (!pair || pair->generation != command.generation) return false;
  Rows rows =
      db.Query("SELECT 1 FROM results WHERE id = ? AND blob = ?", pair->result, command.blob);
  return rows.Next();
}

void Audit(WriteContext& context, const ResultKey& key, const Actor& actor, int64_t at,
           std::string text) {
  AuditRecord record;
  record.at = at;
  record.kind = AuditKind::kDamage;
  record.SetActor(actor);
  record.key = key;
  record.text = std::move(text);
  context.audit.Add(record);
}

// Tells the followers of the feed whether the result is requested from its node.
void AddRedeliveryChange(WriteContext& context, const ResultKey& key, int64_t at) {
  ChangeRecord change;
  change.at = at;
  change.kind = ChangeKind::kRedelivery;
  change.run = key.run;
  change.plugin = key.plugin;
  change.node = key.node;
  if (ReadRedelivery(context.db, key) == kRedeliveryRequested) change.text = kRedeliveryRequested;
  context.AddChange(change);
}

// Requests a result again that its node declined before another verification.
void RequestAgain(WriteContext& context, const RecordDamage& command) {
  const ResultKey& key = command.key;
  if (context.db.Run("UPDATE damaged SET declined = '' WHERE run = ? AND plugin = ? AND node = ?"
                     " AND declined <> ''",
                     key.run, key.plugin, key.node) == 0) {
    return;
  }
  AddRedeliveryChange(context, key, command.at);
  AddRunChange(context, key.run, ChangeKind::kRun, command.at);
}

}  // namespace

bool ForgetDamage(Connection& db, const ResultKey& key) {
  return db.Run("DELETE FROM damaged WHERE run = ? AND plugin = ? AND node = ?", key.run,
                key.plugin, key.node) > 0;
}

absl::StatusOr<RecordDamage::Result> Execute(WriteContext& context, const RecordDamage& command) {
  Connection& db = context.db;
  const ResultKey& key = command.key;
  if (!IsCurrent(db, command)) return RecordDamage::Result{};
  RecordDamage::Result outcome{.current = true};
  if (ReadDamage(db, key) == command.damage) {
    if (!command.damage.empty() && !command.keep_declined) RequestAgain(context, command);
    outcome.redelivery = ReadRedelivery(db, key);
    return outcome;
  }
  if (command.damage.empty()) {
    outcome.changed = ForgetDamage(db, key);
  } else {
    db.Run(
        "INSERT INTO damaged VALUES (?, ?, ?, ?, ?, '') ON CONFLICT DO UPDATE SET"
        " declined = CASE WHEN ? AND generation = excluded.generation THEN declined ELSE '' END,"
        " generation = excluded.generation, damage = excluded.damage",
        key.run, key.plugin, key.node, command.generation, command.damage, command.keep_declined);
    outcome.changed = true;
  }
  if (!outcome.changed) return outcome;
  outcome.redelivery = ReadRedelivery(db, key);
  const std::string object = key.plugin.empty() ? std::string("the stored archive")
                                                : absl::StrCat("generation ", command.generation);
  Audit(context, key, command.actor, command.at,
        command.damage.empty() ? absl::StrCat(object, " is intact again")
                               : absl::StrCat(object, " is damaged: ", command.damage));
  if (!key.plugin.empty()) AddRedeliveryChange(context, key, command.at);
  AddRunChange(context, key.run, ChangeKind::kRun, command.at);
  return outcome;
}

absl::StatusOr<DeclineRedelivery::Result> Execute(WriteContext& context,
                                                  const DeclineRedelivery& command) {
  Connection& db = context.db;
  const ResultKey& key = command.key;
  DeclineRedelivery::Result outcome;
  outcome.found = FindPair(db, key).has_value();
  if (ReadRedelivery(db, key) != kRedeliveryRequested) return outcome;
  db.Run("UPDATE damaged SET declined = ? WHERE run = ? AND plugin = ? AND node = ?",
         command.reason, key.run, key.plugin, key.node);
  Audit(context, key, command.actor, command.at,
        absl::StrCat("the node cannot deliver the damaged result again: ", command.reason));
  AddRedeliveryChange(context, key, command.at);
  AddRunChange(context, key.run, ChangeKind::kRun, command.at);
  outcome.declined = true;
  return outcome;
}

bool RepairResult(WriteContext& context, int64_t row, const ResultRecord& head,
                  const ResultRecord& result) {
  Connection& db = context.db;
  // Two contents may have the same CRC32C.
  if (result.sha256.empty() || head.sha256 != result.sha256) return false;
  if (ReadDamage(db, result.key).empty()) return false;
  ForgetDamage(db, result.key);
  db.Run("UPDATE results SET blob = ? WHERE id = ?", result.blob, row);
  db.Run("DELETE FROM bodies WHERE result = ?", row);
  if (result.blob.empty() && !result.body.empty()) {
    db.Run("INSERT INTO bodies (result, body) VALUES (?, ?)", row, Blob{result.body});
  }
  Audit(context, result.key, {result.delivery.uri, result.delivery.vouched_by}, result.committed_at,
        "the same content was delivered again, which repaired the damaged result");
  AddRedeliveryChange(context, result.key, result.committed_at);
  AddRunChange(context, result.key.run, ChangeKind::kRun, result.committed_at);
  db.Run("UPDATE runs SET last_result_change = last_change WHERE id = ?", result.key.run);
  return true;
}

absl::StatusOr<SaveScrubPosition::Result> Execute(WriteContext& context,
                                                  const SaveScrubPosition& command) {
  context.db.Run("INSERT OR REPLACE INTO marks VALUES (?, ?)", std::string_view(kScrubMark),
                 command.position);
  return SaveScrubPosition::Result{};
}

std::string ReadDamage(Connection& db, const ResultKey& key) {
  Rows rows = db.Query(
      "SELECT damage FROM damaged AS d WHERE run = ? AND plugin = ? AND node = ?"
      " AND (plugin = '' OR generation = (SELECT generation FROM pairs AS p WHERE p.run = d.run"
      " AND p.plugin = d.plugin AND p.node = d.node))",
      key.run, key.plugin, key.node);
  return rows.Next() ? rows.Text() : "";
}

std::string ReadRedelivery(Connection& db, const ResultKey& key) {
  Rows rows = db.Query("SELECT d.declined" MUSTER_REDELIVERIES
                       " AND d.run = ? AND d.plugin = ? AND d.node = ?",
                       key.run, key.plugin, key.node);
  if (!rows.Next()) return "";
  std::string declined = rows.Text();
  return declined.empty() ? std::string(kRedeliveryRequested)
                          : absl::StrCat("declined: ", declined);
}

absl::StatusOr<Page<ResultKey>> ReadRedeliveries(Connection& db, std::string_view run,
                                                 std::string_view page_token, int limit) {
  PageToken after;  // the run; plugin and node
  PageToken pair;
  if (!page_token.empty()) {
    ASSIGN_OR_RETURN(after, ParsePageToken(page_token));
    ASSIGN_OR_RETURN(pair, ParsePageToken(after.second));
  }
  limit = std::clamp(limit, 1, kMaxPage);
  Page<ResultKey> page;
  Rows rows = db.Query("SELECT d.run, d.plugin, d.node" MUSTER_REDELIVERIES
                       " AND d.declined = '' AND (? = '' OR d.run = ?)"
                       " AND (d.run, d.plugin, d.node) > (?, ?, ?)"
                       " ORDER BY d.run, d.plugin, d.node LIMIT ?",
                       run, run, after.first, pair.first, pair.second, limit);
  while (rows.Next()) {
    ResultKey& key = page.items.emplace_back();
    key.run = rows.Text();
    key.plugin = rows.Text();
    key.node = rows.Text();
  }
  if (static_cast<int>(page.items.size()) == limit) {
    const ResultKey& last = page.items.back();
    page.next = MakePageToken(last.run, MakePageToken(last.plugin, last.node));
  }
  return page;
}

int64_t CountDamaged(Connection& db) {
  Rows rows = db.Query("SELECT count(*) FROM damaged WHERE run IN (SELECT id FROM runs)");
  return rows.Next() ? rows.Int() : 0;
}

std::string ReadScrubPosition(Connection& db) {
  Rows rows = db.Query("SELECT value FROM marks WHERE name = ?", std::string_view(kScrubMark));
  return rows.Next() ? rows.Text() : "";
}

}  // namespace muster::sqlite
