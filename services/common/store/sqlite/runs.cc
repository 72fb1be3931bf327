#include "services/common/store/sqlite/runs.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::sqlite {
namespace {

std::optional<std::string> FindByRequest(Connection& db, std::string_view request_id) {
  if (request_id.empty()) return std::nullopt;
  Rows rows = db.Query("SELECT id FROM runs WHERE request_id = ? AND request_id <> ''", request_id);
  if (!rows.Next()) return std::nullopt;
  return rows.Text();
}

void InsertRun(Connection& db, const RunRecord& run) {
  db.Run(
      "INSERT INTO runs (id, request_id, title, created_by, state, reason, created_at, deadline_at,"
      " seal_grace, ended_at, planned, pending, genuine, errors, timed_out, listener_hosts,"
      " listener_port, listener_open, listener_fault, archive_blob, archive_file_name,"
      " archive_size, archive_sha256, archive_created_at, last_change, last_result_change,"
      " refusals, start_grace, lost_after, fail_fast)"
      " VALUES (?, ?, ?, ?, ?, '', ?, ?, ?, 0, 0, 0, 0, 0, 0, ?, ?, ?, ?, '', '', 0, x'', 0, 0, 0,"
      " 0, ?, ?, ?)",
      run.id, run.request_id, run.title, run.created_by, RunState::kPlanned, run.created_at,
      run.deadline_at, run.seal_grace, absl::StrJoin(run.listener.hosts, "\n"), run.listener.port,
      run.listener.open, run.listener.fault, run.start_grace, run.lost_after, run.fail_fast);
  int64_t position = 0;
  for (const PluginRecord& plugin : run.plugins) {
    db.Run("INSERT INTO run_plugins VALUES (?, ?, ?, ?, ?, ?, ?)", run.id, position++, plugin.name,
           plugin.once, plugin.has_image, plugin.result_format, plugin.definition_yaml);
  }
}

void AuditRun(WriteContext& context, std::string_view run, const Actor& actor, int64_t at,
              std::string text) {
  AuditRecord record;
  record.at = at;
  record.kind = AuditKind::kRun;
  record.SetActor(actor);
  record.key.run = run;
  record.text = std::move(text);
  context.audit.Add(record);
}

// Times out the pending pairs of the plan in bulk: one row of results and one change for each.
void TimeOutPairs(WriteContext& context, const TimeOutRun& command, int64_t pending) {
  Connection& db = context.db;
  int64_t last_id = 0;
  {
    Rows rows = db.Query("SELECT id FROM results ORDER BY id DESC LIMIT 1");
    if (rows.Next()) last_id = rows.Int();
  }
  const int64_t before = context.ReserveSequences(pending);
  db.Run(
      "INSERT INTO results (id, run, plugin, node, generation, outcome, size, crc32c, sha256,"
      " media_type, file_name, blob, error, uri, node_unproven, vouched_by, signature, signer_pem,"
      " committed_at, partial_blob, partial_size, replaced)"
      " SELECT ? + row_number() OVER (ORDER BY plugin, node), run, plugin, node, generation + 1, ?,"
      " 0, 0, x'', '', '', '', ?, '', 0, '', x'', '', ?, '', 0, 0"
      " FROM pairs WHERE run = ? AND outcome = 0",
      last_id, Outcome::kTimedOut, command.error, command.at, command.run);
  db.Run(
      "INSERT INTO changes (sequence, at, kind, run, plugin, node, outcome, generation, size, text)"
      " SELECT ? + row_number() OVER (ORDER BY plugin, node), ?, ?, run, plugin, node, ?,"
      " generation + 1, 0, ? FROM pairs WHERE run = ? AND outcome = 0",
      before, command.at, ChangeKind::kResult, Outcome::kTimedOut, command.error, command.run);
  db.Run(
      "UPDATE pairs SET outcome = ?, generation = new.generation, result = new.id"
      " FROM (SELECT id, run, plugin, node, generation FROM results WHERE id > ?) AS new"
      " WHERE pairs.run = new.run AND pairs.plugin = new.plugin AND pairs.node = new.node",
      Outcome::kTimedOut, last_id);
}

// Returns the size of the partial data that the pair has.
int64_t PartialSize(Connection& db, std::string_view run, const PartialData& partial) {
  Rows rows = db.Query(
      "SELECT partial_size FROM results WHERE id ="
      " (SELECT result FROM pairs WHERE run = ? AND plugin = ? AND node = ?)",
      run, partial.plugin, partial.node);
  return rows.Next() ? rows.Int() : 0;
}

bool IsPinned(Connection& db, std::string_view run) {
  Rows rows = db.Query("SELECT pinned FROM runs WHERE id = ?", run);
  return rows.Next() && rows.Bool();
}

}  // namespace

void AddRunChange(WriteContext& context, std::string_view run, ChangeKind kind, int64_t at) {
  context.current.Flush();  // its counts precede this change
  ChangeRecord change;
  change.at = at;
  change.kind = kind;
  change.run = run;
  const int64_t sequence = context.AddChange(change);
  context.db.Run("UPDATE runs SET last_change = ? WHERE id = ?", sequence, run);
}

void SetRunState(WriteContext& context, std::string_view run, RunState state, int64_t at) {
  context.db.Run("UPDATE runs SET state = ? WHERE id = ?", state, run);
  if (state == RunState::kPostProcessing) {
    context.db.Run("UPDATE runs SET settled_at = ? WHERE id = ?", at, run);
  }
  AddRunChange(context, run, ChangeKind::kRun, at);
  context.current.Forget();
}

void FinishRun(WriteContext& context, const EndRun& end) {
  context.db.Run("UPDATE runs SET reason = ?, ended_at = ? WHERE id = ?", end.reason, end.at,
                 end.run);
  const bool cancelled = end.state == RunState::kCancelled;
  AuditRun(
      context, end.run, end.actor, end.at,
      absl::StrCat(cancelled ? "cancelled" : "failed", end.reason.empty() ? "" : ": ", end.reason));
  SetRunState(context, end.run, end.state, end.at);
}

void SortPairs(std::vector<PlannedPair>& pairs) {
  std::sort(pairs.begin(), pairs.end(), [](const PlannedPair& a, const PlannedPair& b) {
    return std::tie(a.plugin, a.node) < std::tie(b.plugin, b.node);
  });
}

int64_t InsertPairs(Connection& db, std::string_view run, std::span<const PlannedPair> pairs) {
  int64_t inserted = 0;
  for (const PlannedPair& pair : pairs) {
    inserted += db.Run(
        "INSERT INTO pairs (run, plugin, node, outcome, generation, result, attempt)"
        " VALUES (?, ?, ?, 0, 0, 0, 0) ON CONFLICT DO NOTHING",
        run, pair.plugin, pair.node);
  }
  return inserted;
}

std::optional<absl::StatusOr<CreateRun::Result>> CheckCreation(WriteContext& context,
                                                               const CreateRun& command) {
  if (auto earlier = FindByRequest(context.db, command.run.request_id)) {
    return CreateRun::Result{.run = *earlier, .existed = true};
  }
  if (FindRun(context.db, command.run.id)) {
    return absl::AlreadyExistsError(absl::StrCat("run ", command.run.id, " exists"));
  }
  return std::nullopt;
}

CreateRun::Result FinishCreation(WriteContext& context, const CreateRun& command, int64_t planned) {
  Connection& db = context.db;
  const RunRecord& run = command.run;
  InsertRun(db, run);
  db.Run("UPDATE runs SET planned = ?, pending = ? WHERE id = ?", planned, planned, run.id);
  const RunAuthorityRecord& authority = command.authority;
  db.Run("INSERT INTO run_authorities VALUES (?, ?, ?, ?, ?)", run.id, authority.fleet_signed_pem,
         authority.self_signed_pem, Blob{authority.wrapped_key}, authority.ends_at);
  AuditRun(context, run.id, {run.created_by, command.vouched_by}, run.created_at, "created");
  AddRunChange(context, run.id, ChangeKind::kRunCreated, run.created_at);
  return CreateRun::Result{.run = run.id};
}

absl::StatusOr<CreateRun::Result> Execute(WriteContext& context, const CreateRun& command) {
  if (auto refused = CheckCreation(context, command)) return *refused;
  std::vector<PlannedPair> pairs = command.pairs;
  SortPairs(pairs);
  const int64_t planned = InsertPairs(context.db, command.run.id, pairs);
  return FinishCreation(context, command, planned);
}

absl::StatusOr<ReportListener::Result> Execute(WriteContext& context,
                                               const ReportListener& command) {
  auto view = ReadRun(context.db, command.run);
  if (!view) return ReportListener::Result{};
  ListenerRecord now = view->run.listener;
  if (now.port == 0) now.port = command.listener.port;
  if (!command.listener.hosts.empty()) now.hosts = command.listener.hosts;
  now.open = command.listener.open;
  now.fault = command.listener.fault;
  const ListenerRecord& old = view->run.listener;
  if (std::tie(now.hosts, now.port, now.open, now.fault) !=
      std::tie(old.hosts, old.port, old.open, old.fault)) {
    context.db.Run(
        "UPDATE runs SET listener_hosts = ?, listener_port = ?, listener_open = ?,"
        " listener_fault = ? WHERE id = ?",
        absl::StrJoin(now.hosts, "\n"), now.port, now.open, now.fault, command.run);
    AddRunChange(context, command.run, ChangeKind::kRun, command.at);
  }
  return ReportListener::Result{.found = true, .listener = std::move(now)};
}

absl::StatusOr<TimeOutRun::Result> Execute(WriteContext& context, const TimeOutRun& command) {
  const auto head = FindRun(context.db, command.run);
  if (!head || head->state > RunState::kRunning) return TimeOutRun::Result{};
  TimeOutPairs(context, command, head->pending);
  context.db.Run(
      "UPDATE runs SET timed_out = timed_out + pending, pending = 0, last_result_change = ?"
      " WHERE id = ?",
      context.last_change(), command.run);
  SetRunState(context, command.run, RunState::kPostProcessing, command.at);
  if (head->fail_fast && head->pending > 0) {
    FinishRun(context, {.run = command.run,
                        .state = RunState::kFailed,
                        .reason = absl::StrCat(head->pending, " pairs: ", command.error),
                        .actor = command.actor,
                        .at = command.at});
  }
  return TimeOutRun::Result{.changed = true, .timed_out = head->pending};
}

absl::StatusOr<KeepPartials::Result> Execute(WriteContext& context, const KeepPartials& command) {
  Connection& db = context.db;
  const auto head = FindRun(db, command.run);
  const bool open = head && !IsFinal(head->state);
  KeepPartials::Result outcome;
  bool kept = false;
  int64_t bytes = 0;
  for (const PartialData& partial : command.partial) {
    const int64_t earlier = PartialSize(db, command.run, partial);
    const int64_t changed =
        open
            ? db.Run(
                  "UPDATE results SET partial_blob = ?, partial_size = ? WHERE outcome = ? AND id ="
                  " (SELECT result FROM pairs WHERE run = ? AND plugin = ? AND node = ?)"
                  " AND partial_blob IN ('', ?)",
                  partial.blob, partial.size, Outcome::kTimedOut, command.run, partial.plugin,
                  partial.node, partial.blob)
            : 0;
    if (changed == 0) {
      outcome.unused.push_back(partial.blob);
      continue;
    }
    kept = true;
    bytes += partial.size - earlier;
  }
  db.Run("DELETE FROM uploads WHERE run = ?", command.run);
  if (kept) {
    AddRunChange(context, command.run, ChangeKind::kRun, command.at);
    db.Run(
        "UPDATE runs SET last_result_change = last_change, result_bytes = result_bytes + ?"
        " WHERE id = ?",
        bytes, command.run);
  }
  return outcome;
}

absl::StatusOr<SealRun::Result> Execute(WriteContext& context, const SealRun& command) {
  const ArchiveRecord& archive = command.archive;
  const int64_t changed = context.db.Run(
      "UPDATE runs SET archive_blob = ?, archive_file_name = ?, archive_size = ?,"
      " archive_sha256 = ?, archive_created_at = ?, ended_at = ?, seal_fault = ''"
      " WHERE id = ? AND state = ? AND last_result_change <= ?",
      archive.blob, archive.file_name, archive.size, Blob{archive.sha256}, archive.created_at,
      command.at, command.run, RunState::kPostProcessing, command.begun_at_change);
  if (changed == 0) return SealRun::Result{};
  SetRunState(context, command.run, RunState::kComplete, command.at);
  const auto view = ReadRun(context.db, command.run);
  if (!view) return SealRun::Result{};  // the disk failed, so the transaction fails
  AuditRun(context, command.run, command.actor, command.at,
           absl::StrCat("complete: ", view->run.genuine, " of ", view->run.planned,
                        " results genuine; SHA-256 of the archive: ",
                        absl::BytesToHexString(archive.sha256)));
  return SealRun::Result{.changed = true};
}

absl::StatusOr<ReportSealFault::Result> Execute(WriteContext& context,
                                                const ReportSealFault& command) {
  const int64_t changed = context.db.Run(
      "UPDATE runs SET seal_fault = ? WHERE id = ? AND state = ? AND seal_fault <> ?",
      command.fault, command.run, RunState::kPostProcessing, command.fault);
  if (changed > 0) AddRunChange(context, command.run, ChangeKind::kRun, command.at);
  return ReportSealFault::Result{.changed = changed > 0};
}

absl::StatusOr<EndRun::Result> Execute(WriteContext& context, const EndRun& command) {
  if (command.state != RunState::kCancelled && command.state != RunState::kFailed) {
    return absl::InvalidArgumentError("a run can only be ended as cancelled or failed");
  }
  const auto head = FindRun(context.db, command.run);
  if (!head) return EndRun::Result{};
  if (IsFinal(head->state) || (command.only_planned && head->state != RunState::kPlanned)) {
    return EndRun::Result{.found = true, .state = head->state};
  }
  FinishRun(context, command);
  return EndRun::Result{.found = true, .changed = true, .state = command.state};
}

absl::StatusOr<DeleteRun::Result> Execute(WriteContext& context, const DeleteRun& command) {
  Connection& db = context.db;
  const auto head = FindRun(db, command.run);
  if (!head) return DeleteRun::Result{};
  if (!IsFinal(head->state)) return DeleteRun::Result{.found = true};
  if (!command.rule.empty() && IsPinned(db, command.run)) return DeleteRun::Result{.found = true};
  // Many rows are removed later, in small steps; without its own row the run does not exist for
  // readers.
  db.Run("INSERT INTO deleted_runs VALUES (?)", command.run);
  db.Run("DELETE FROM uploads WHERE run = ?", command.run);
  db.Run("DELETE FROM run_plugins WHERE run = ?", command.run);
  db.Run("DELETE FROM run_authorities WHERE run = ?", command.run);
  db.Run("DELETE FROM status_listeners WHERE run = ?", command.run);
  db.Run("DELETE FROM damaged WHERE run = ?", command.run);
  AuditRun(context, command.run, command.actor, command.at,
           command.rule.empty() ? "deleted" : absl::StrCat("deleted by retention: ", command.rule));
  AddRunChange(context, command.run, ChangeKind::kRunDeleted, command.at);
  db.Run("DELETE FROM runs WHERE id = ?", command.run);
  return DeleteRun::Result{.found = true, .deleted = true};
}

absl::StatusOr<WipeAuthority::Result> Execute(WriteContext& context, const WipeAuthority& command) {
  if (context.db.Run("DELETE FROM run_authorities WHERE run = ?", command.run) == 0) {
    return WipeAuthority::Result{};
  }
  context.db.Run("DELETE FROM status_listeners WHERE run = ?", command.run);
  context.db.Run("UPDATE runs SET listener_open = 0, status_open = 0 WHERE id = ?", command.run);
  AddRunChange(context, command.run, ChangeKind::kRun, command.at);
  return WipeAuthority::Result{.changed = true};
}

absl::StatusOr<PinRun::Result> Execute(WriteContext& context, const PinRun& command) {
  if (!FindRun(context.db, command.run)) return PinRun::Result{};
  const int64_t changed = context.db.Run("UPDATE runs SET pinned = ? WHERE id = ? AND pinned <> ?",
                                         command.pinned, command.run, command.pinned);
  if (changed > 0) {
    AuditRun(context, command.run, command.actor, command.at,
             command.pinned ? "pinned" : "unpinned");
    AddRunChange(context, command.run, ChangeKind::kRun, command.at);
  }
  return PinRun::Result{.found = true, .changed = changed > 0};
}

bool PruneDeletedRuns(WriteContext& context, int64_t step) {
  Connection& db = context.db;
  std::string run;
  {
    Rows rows = db.Query("SELECT run FROM deleted_runs LIMIT 1");
    if (!rows.Next()) return false;
    run = rows.Text();
  }
  // Results precede their pairs, because the pair refers to its result.
  db.Run(
      "DELETE FROM bodies WHERE result IN"
      " (SELECT result FROM pairs WHERE run = ? ORDER BY plugin, node LIMIT ?)",
      run, step);
  db.Run(
      "DELETE FROM results WHERE id IN"
      " (SELECT result FROM pairs WHERE run = ? ORDER BY plugin, node LIMIT ?)",
      run, step);
  const int64_t pairs = db.Run(
      "DELETE FROM pairs WHERE (run, plugin, node) IN"
      " (SELECT run, plugin, node FROM pairs WHERE run = ? ORDER BY plugin, node LIMIT ?)",
      run, step);
  if (pairs == step) return true;
  db.Run(
      "DELETE FROM bodies WHERE result IN"
      " (SELECT id FROM results WHERE run = ? AND replaced = 1 ORDER BY id LIMIT ?)",
      run, step);
  const int64_t replaced = db.Run(
      "DELETE FROM results WHERE id IN"
      " (SELECT id FROM results WHERE run = ? AND replaced = 1 ORDER BY id LIMIT ?)",
      run, step);
  if (replaced < step) db.Run("DELETE FROM deleted_runs WHERE run = ?", run);
  return true;
}

}  // namespace muster::sqlite
