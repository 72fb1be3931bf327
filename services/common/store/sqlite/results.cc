#include "services/common/store/sqlite/results.h"

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/store/sqlite/damage.h"
#include "services/common/store/sqlite/runs.h"
#include "services/common/store/sqlite/uploads.h"

namespace muster::sqlite {
namespace {

using Verdict = CommitResult::Verdict;

// Compares the content of two deliveries by SHA-256, or by size and checksum if one has none.
bool SameContent(const ResultRecord& a, const ResultRecord& b) {
  if (a.size != b.size) return false;
  if (!a.sha256.empty() && !b.sha256.empty()) return a.sha256 == b.sha256;
  return a.crc32c == b.crc32c;
}

bool SameOutcome(const ResultRecord& a, const ResultRecord& b) {
  return a.outcome == b.outcome && a.error == b.error && SameContent(a, b);
}

std::string Describe(const ResultRecord& result) {
  return absl::StrCat(result.size, " bytes, ",
                      result.sha256.empty()
                          ? absl::StrCat("CRC32C ", absl::Hex(result.crc32c, absl::kZeroPad8))
                          : absl::StrCat("SHA-256 ", absl::BytesToHexString(result.sha256)),
                      result.error.empty() ? "" : absl::StrCat(", error: ", result.error));
}

AuditRecord AuditOf(AuditKind kind, const CommitResult& command, std::string text) {
  const ResultRecord& result = command.result;
  AuditRecord record;
  record.at = result.committed_at;
  record.kind = kind;
  record.SetActor(RefusalActor(result.delivery, !command.relay_report));
  record.key = result.key;
  record.text = std::move(text);
  return record;
}

// Decides by the current and the incoming result. The run is open, or the incoming content is a
// repetition.
Verdict Judge(const ResultRecord& head, const ResultRecord& incoming) {
  if (head.outcome == Outcome::kPending) return Verdict::kCommitted;
  if (incoming.outcome == Outcome::kGenuine) {
    if (head.outcome != Outcome::kGenuine) return Verdict::kCommitted;
    return SameContent(head, incoming) ? Verdict::kSame : Verdict::kConflict;
  }
  if (SameOutcome(head, incoming)) return Verdict::kSame;
  // The node's own error replaces its time-out.
  return head.outcome == Outcome::kTimedOut ? Verdict::kCommitted : Verdict::kErrorKept;
}

int64_t InsertResult(Connection& db, const ResultRecord& result, int64_t generation) {
  const Delivery& delivery = result.delivery;
  db.Run(
      "INSERT INTO results (run, plugin, node, generation, outcome, size, crc32c, sha256,"
      " media_type, file_name, blob, error, uri, node_unproven, vouched_by, signature, signer_pem,"
      " committed_at, partial_blob, partial_size, replaced)"
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
      result.key.run, result.key.plugin, result.key.node, generation, result.outcome, result.size,
      result.crc32c, Blob{result.sha256}, result.media_type, result.file_name, result.blob,
      result.error, delivery.uri, delivery.node_unproven, delivery.vouched_by,
      Blob{delivery.signature}, delivery.signer_pem, result.committed_at, result.partial_blob,
      result.partial_size);
  const int64_t id = db.last_id();
  if (result.blob.empty() && !result.body.empty()) {
    db.Run("INSERT INTO bodies (result, body) VALUES (?, ?)", id, Blob{result.body});
  }
  return id;
}

// Stores the result and updates the counters. If this was the last pair, changes the run's state
// and returns true. `run` is context.current's.
bool Store(WriteContext& context, const RunHead& run, const PairHead& pair,
           const ResultRecord& result) {
  Connection& db = context.db;
  const ResultKey& key = result.key;
  const int64_t generation = pair.generation + 1;
  const int64_t id = InsertResult(db, result, generation);
  if (pair.result != 0) {
    db.Run("UPDATE results SET replaced = 1 WHERE id = ?", pair.result);
    ForgetDamage(db, key);
  }
  db.Run(
      "UPDATE pairs SET outcome = ?, generation = ?, result = ?"
      " WHERE run = ? AND plugin = ? AND node = ?",
      result.outcome, generation, id, key.run, key.plugin, key.node);

  ChangeRecord change;
  change.at = result.committed_at;
  change.kind = ChangeKind::kResult;
  change.run = key.run;
  change.plugin = key.plugin;
  change.node = key.node;
  change.outcome = result.outcome;
  change.generation = generation;
  change.size = result.size;
  change.text = result.error;
  const int64_t sequence = context.AddChange(change);

  context.current.Count(pair.outcome, result.outcome, result.size, sequence);
  const bool last = run.pending == 0 && run.state < RunState::kPostProcessing;
  if (last) {
    SetRunState(context, key.run, RunState::kPostProcessing, result.committed_at);
  } else if (run.state == RunState::kPlanned && result.outcome != Outcome::kTimedOut) {
    SetRunState(context, key.run, RunState::kRunning, result.committed_at);
  }
  return last;
}

// Returns the verdict if the run's state alone decides, otherwise kCommitted.
Verdict JudgeRun(WriteContext& context, const RunHead& run, const CommitResult& command) {
  if (run.state == RunState::kCancelled || run.state == RunState::kFailed) {
    return Verdict::kCancelled;
  }
  if (!run.ClosedAt(command.result.committed_at)) return Verdict::kCommitted;
  context.audit.AddRefusal(
      AuditOf(AuditKind::kLate, command, absl::StrCat("late: ", Describe(command.result))));
  return Verdict::kSealed;
}

bool OwnsUpload(Connection& db, const CommitResult& command) {
  if (command.upload_id.empty()) return true;
  const auto upload = ReadUpload(db, command.upload_id);
  return upload && upload->epoch == command.epoch && upload->key == command.result.key;
}

// Returns true if nothing needs the blob of a command that was not stored.
bool IsBlobUnused(Connection& db, const CommitResult& command, const ResultRecord& head) {
  const std::string& blob = command.result.blob;
  if (blob.empty() || head.blob == blob) return false;
  if (!command.upload_id.empty()) {
    const auto upload = ReadUpload(db, command.upload_id);
    if (upload && upload->epoch != command.epoch) return false;
  }
  const ResultKey& key = command.result.key;
  Rows rows = db.Query(
      "SELECT 1 FROM results WHERE run = ? AND plugin = ? AND node = ? AND replaced = 1"
      " AND blob = ?",
      key.run, key.plugin, key.node, blob);
  return !rows.Next();
}

void EndUpload(Connection& db, const CommitResult& command) {
  if (command.upload_id.empty()) return;
  db.Run("DELETE FROM uploads WHERE id = ? AND epoch = ?", command.upload_id, command.epoch);
}

void AuditVerdict(WriteContext& context, Verdict verdict, const ResultRecord& head,
                  const CommitResult& command) {
  const ResultRecord& result = command.result;
  if (verdict == Verdict::kConflict || verdict == Verdict::kErrorKept) {
    context.audit.AddRefusal(
        AuditOf(AuditKind::kConflict, command,
                absl::StrCat("kept: ", Describe(head), "; refused: ", Describe(result))));
  } else if (verdict == Verdict::kCommitted && head.outcome != Outcome::kPending) {
    context.audit.Add(AuditOf(
        AuditKind::kReplaced, command,
        absl::StrCat(head.outcome == Outcome::kTimedOut ? "time-out" : "error", " of generation ",
                     head.generation, " replaced by ", Describe(result))));
  }
}

absl::Status CheckCommit(const ResultRecord& result) {
  if (static_cast<int64_t>(result.body.size()) > kInlineLimit) {
    return absl::InvalidArgumentError("an inline body is larger than kInlineLimit");
  }
  if (result.outcome == Outcome::kPending) {
    return absl::InvalidArgumentError("a committed result requires an outcome");
  }
  return absl::OkStatus();
}

// Decides, and stores the result if the verdict is kCommitted.
CommitResult::Result Commit(WriteContext& context, const CommitResult& command) {
  Connection& db = context.db;
  const ResultRecord& result = command.result;
  const RunHead* const run = context.current.Find(result.key.run);
  if (run == nullptr) return CommitResult::Result{.verdict = Verdict::kRunNotFound};
  const auto pair = FindPairOfRun(db, result.key);
  std::optional<ResultRecord> head;
  if (pair) head = ReadHead(db, result.key, *pair);
  CommitResult::Result outcome;
  if (head) outcome.head = *head;

  // The response to an earlier commit may have been lost: the same content remains a success, also
  // after the seal. This does not apply to a stream that does not own its upload, whose blob may
  // belong to another.
  const bool owned = OwnsUpload(db, command);
  const bool ended_otherwise =
      run->state == RunState::kCancelled || run->state == RunState::kFailed;
  if (pair && owned && !ended_otherwise && Judge(*head, result) == Verdict::kSame) {
    EndUpload(db, command);
    // Also of a sealed run: its archive does not change any more, but the result can be read again.
    if (RepairResult(context, pair->result, *head, result)) {
      outcome.head.blob = result.blob;
      outcome.repaired = true;
      return outcome;  // kCommitted
    }
    outcome.verdict = Verdict::kSame;
    return outcome;
  }
  if (outcome.verdict = JudgeRun(context, *run, command); outcome.verdict != Verdict::kCommitted) {
    return outcome;
  }
  if (!pair) {
    context.audit.AddRefusal(AuditOf(AuditKind::kUnplanned, command, "not in the plan"));
    outcome.verdict = Verdict::kNotPlanned;
    return outcome;
  }
  if (!owned) {
    outcome.verdict = Verdict::kTakenOver;
    return outcome;
  }
  if (command.relay_report) {
    context.audit.AddRefusal(AuditOf(AuditKind::kExpired, command, result.error));
    outcome.verdict = Verdict::kErrorKept;
    return outcome;
  }
  outcome.verdict = Judge(*head, result);
  const bool is_error = result.outcome != Outcome::kGenuine;
  if (outcome.verdict == Verdict::kCommitted &&
      run->IsExceededBy(result.size, is_error, command.max_run_bytes)) {
    outcome.verdict = Verdict::kRunFull;
    outcome.run_bytes = run->result_bytes;
  }
  AuditVerdict(context, outcome.verdict, *head, command);
  EndUpload(db, command);
  if (outcome.verdict == Verdict::kCommitted) {
    outcome.last = Store(context, *run, *pair, result);
    if (command.signed_attempt > pair->attempt) {
      SetAttempt(db, result.key, command.signed_attempt);
    }
    outcome.head = result;
    outcome.head.generation = pair->generation + 1;
    outcome.head.body.clear();
    outcome.head.delivery.signer_pem.clear();
  }
  return outcome;
}

}  // namespace

void SetAttempt(Connection& db, const ResultKey& key, int64_t attempt) {
  db.Run("UPDATE pairs SET attempt = ? WHERE run = ? AND plugin = ? AND node = ?", attempt, key.run,
         key.plugin, key.node);
}

absl::StatusOr<CommitResult::Result> Execute(WriteContext& context, const CommitResult& command) {
  RETURN_IF_ERROR(CheckCommit(command.result));
  CommitResult::Result outcome = Commit(context, command);
  outcome.blob_unused =
      outcome.verdict != Verdict::kCommitted && IsBlobUnused(context.db, command, outcome.head);
  return outcome;
}

absl::StatusOr<TimeOutPair::Result> Execute(WriteContext& context, const TimeOutPair& command) {
  Connection& db = context.db;
  const ResultKey& key = command.key;
  const RunHead* const run = context.current.Find(key.run);
  if (run == nullptr || run->state > RunState::kRunning) return TimeOutPair::Result{};
  const bool fail_fast = run->fail_fast;
  const auto pair = FindPairOfRun(db, key);
  if (!pair || pair->outcome != Outcome::kPending) return TimeOutPair::Result{};
  ResultRecord result;
  result.key = key;
  result.outcome = Outcome::kTimedOut;
  result.error = command.error;
  result.committed_at = command.at;
  Store(context, *run, *pair, result);
  if (fail_fast) {
    FinishRun(context, {.run = key.run,
                        .state = RunState::kFailed,
                        .reason = absl::StrCat(key.plugin, " on ", key.node, ": ", command.error),
                        .actor = command.actor,
                        .at = command.at});
  }
  return TimeOutPair::Result{.changed = true, .failed = fail_fast};
}

}  // namespace muster::sqlite
