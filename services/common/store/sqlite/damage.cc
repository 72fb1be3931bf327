#include "services/common/store/sqlite/damage.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/store/sqlite/results.h"
#include "services/common/store/sqlite/runs.h"

namespace muster::sqlite {
namespace {

constexpr char kScrubMark[] = "scrub";

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
  if (ReadDamage(db, key) == command.damage) return outcome;
  if (command.damage.empty()) {
    outcome.changed = ForgetDamage(db, key);
  } else {
    db.Run("INSERT OR REPLACE INTO damaged VALUES (?, ?, ?, ?, ?)", key.run, key.plugin, key.node,
           command.generation, command.damage);
    outcome.changed = true;
  }
  if (!outcome.changed) return outcome;
  const std::string object = key.plugin.empty() ? std::string("the stored archive")
                                                : absl::StrCat("generation ", command.generation);
  Audit(context, key, command.actor, command.at,
        command.damage.empty() ? absl::StrCat(object, " is intact again")
                               : absl::StrCat(object, " is damaged: ", command.damage));
  AddRunChange(context, key.run, ChangeKind::kRun, command.at);
  return outcome;
}

bool RepairResult(WriteContext& context, int64_t row, const ResultRecord& result) {
  Connection& db = context.db;
  if (ReadDamage(db, result.key).empty()) return false;
  ForgetDamage(db, result.key);
  db.Run("UPDATE results SET blob = ? WHERE id = ?", result.blob, row);
  db.Run("DELETE FROM bodies WHERE result = ?", row);
  if (result.blob.empty() && !result.body.empty()) {
    db.Run("INSERT INTO bodies (result, body) VALUES (?, ?)", row, Blob{result.body});
  }
  Audit(context, result.key, {result.delivery.uri, result.delivery.vouched_by}, result.committed_at,
        "the same content was delivered again, which repaired the damaged result");
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

int64_t CountDamaged(Connection& db) {
  Rows rows = db.Query("SELECT count(*) FROM damaged WHERE run IN (SELECT id FROM runs)");
  return rows.Next() ? rows.Int() : 0;
}

std::string ReadScrubPosition(Connection& db) {
  Rows rows = db.Query("SELECT value FROM marks WHERE name = ?", std::string_view(kScrubMark));
  return rows.Next() ? rows.Text() : "";
}

}  // namespace muster::sqlite
