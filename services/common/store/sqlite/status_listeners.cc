#include "services/common/store/sqlite/status_listeners.h"

#include <tuple>
#include <utility>

#include "absl/strings/str_join.h"
#include "services/common/store/sqlite/runs.h"

namespace muster::sqlite {

absl::StatusOr<SetStatusListener::Result> Execute(WriteContext& context,
                                                  const SetStatusListener& command) {
  using Verdict = SetStatusListener::Verdict;
  const auto view = ReadRun(context.db, command.run);
  if (!view) return SetStatusListener::Result{Verdict::kRunNotFound};
  if (IsFinal(view->run.state)) return SetStatusListener::Result{Verdict::kRunEnded};
  if (view->run.status_listener) return SetStatusListener::Result{Verdict::kExists};
  const StatusListenerRecord& listener = command.listener;
  context.db.Run("INSERT INTO status_listeners VALUES (?, ?, ?, ?)", command.run,
                 listener.client_ca_pem, listener.certificate_pem, Blob{listener.wrapped_key});
  context.db.Run("UPDATE runs SET has_status_listener = 1, status_hosts = ? WHERE id = ?",
                 absl::StrJoin(command.hosts, "\n"), command.run);
  AuditRecord record;
  record.at = command.at;
  record.kind = AuditKind::kRun;
  record.SetActor(command.actor);
  record.key.run = command.run;
  record.text = "got its own status listener";
  context.audit.Add(record);
  AddRunChange(context, command.run, ChangeKind::kRun, command.at);
  return SetStatusListener::Result{Verdict::kSet};
}

absl::StatusOr<ReportStatusListener::Result> Execute(WriteContext& context,
                                                     const ReportStatusListener& command) {
  const auto view = ReadRun(context.db, command.run);
  if (!view || !view->run.status_listener) return ReportStatusListener::Result{};
  const ListenerRecord& old = *view->run.status_listener;
  ListenerRecord now = old;
  if (now.port == 0) now.port = command.listener.port;
  now.open = command.listener.open;
  now.fault = command.listener.fault;
  if (std::tie(now.port, now.open, now.fault) != std::tie(old.port, old.open, old.fault)) {
    context.db.Run(
        "UPDATE runs SET status_port = ?, status_open = ?, status_fault = ? WHERE id = ?", now.port,
        now.open, now.fault, command.run);
    AddRunChange(context, command.run, ChangeKind::kRun, command.at);
  }
  return ReportStatusListener::Result{.found = true, .listener = std::move(now)};
}

std::optional<StatusListenerRecord> ReadStatusListener(Connection& db, std::string_view run) {
  Rows rows = db.Query(
      "SELECT client_ca_pem, certificate_pem, wrapped_key FROM status_listeners WHERE run = ?",
      run);
  if (!rows.Next()) return std::nullopt;
  StatusListenerRecord listener;
  listener.client_ca_pem = rows.Text();
  listener.certificate_pem = rows.Text();
  listener.wrapped_key = rows.Text();
  return listener;
}

}  // namespace muster::sqlite
