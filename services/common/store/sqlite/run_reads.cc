#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/runs.h"
#include "services/common/store/sqlite/page_token.h"
#include "services/common/store/sqlite/runs.h"

namespace muster::sqlite {
namespace {

#define MUSTER_RUN_COLUMNS                                                                  \
  "id, request_id, title, created_by, state, reason, created_at, deadline_at, seal_grace, " \
  "ended_at, planned, pending, genuine, errors, timed_out, listener_hosts, listener_port, " \
  "listener_open, listener_fault, archive_blob, archive_file_name, archive_size, "          \
  "archive_sha256, archive_created_at, last_change, last_result_change, start_grace, "      \
  "lost_after, fail_fast, settled_at, (SELECT count(*) FROM damaged WHERE run = runs.id), " \
  "COALESCE((SELECT damage FROM damaged WHERE run = runs.id AND plugin = ''), ''), "        \
  "seal_fault, result_bytes, pinned, "                                                      \
  "NOT EXISTS (SELECT 1 FROM run_authorities WHERE run = runs.id), "                        \
  "has_status_listener, status_hosts, status_port, status_open, status_fault"

std::vector<std::string> ReadHosts(Rows& rows) {
  const std::string hosts = rows.Text();
  if (hosts.empty()) return {};
  return absl::StrSplit(hosts, '\n');
}

RunView ParseRun(Rows& rows) {
  RunView view;
  RunRecord& run = view.run;
  run.id = rows.Text();
  run.request_id = rows.Text();
  run.title = rows.Text();
  run.created_by = rows.Text();
  run.state = rows.Enum<RunState>();
  run.reason = rows.Text();
  run.created_at = rows.Int();
  run.deadline_at = rows.Int();
  run.seal_grace = rows.Int();
  run.ended_at = rows.Int();
  run.planned = rows.Int();
  run.pending = rows.Int();
  run.genuine = rows.Int();
  run.errors = rows.Int();
  run.timed_out = rows.Int();
  run.listener.hosts = ReadHosts(rows);
  run.listener.port = static_cast<int32_t>(rows.Int());
  run.listener.open = rows.Bool();
  run.listener.fault = rows.Text();
  run.archive.blob = rows.Text();
  run.archive.file_name = rows.Text();
  run.archive.size = rows.Int();
  run.archive.sha256 = rows.Text();
  run.archive.created_at = rows.Int();
  view.last_change = rows.Int();
  view.last_result_change = rows.Int();
  run.start_grace = rows.Int();
  run.lost_after = rows.Int();
  run.fail_fast = rows.Bool();
  run.settled_at = rows.Int();
  run.damaged = rows.Int();
  run.archive.damage = rows.Text();
  run.seal_fault = rows.Text();
  run.result_bytes = rows.Int();
  run.pinned = rows.Bool();
  run.ca_deleted = rows.Bool();
  if (rows.Bool()) {
    ListenerRecord& listener = run.status_listener.emplace();
    listener.hosts = ReadHosts(rows);
    listener.port = static_cast<int32_t>(rows.Int());
    listener.open = rows.Bool();
    listener.fault = rows.Text();
  }
  return view;
}

void AddPlugins(Connection& db, RunRecord& run) {
  Rows rows = db.Query(
      "SELECT name, once, has_image, result_format, definition_yaml FROM run_plugins WHERE run = ?"
      " ORDER BY position",
      run.id);
  while (rows.Next()) {
    PluginRecord plugin;
    plugin.name = rows.Text();
    plugin.once = rows.Bool();
    plugin.has_image = rows.Bool();
    plugin.result_format = rows.Text();
    plugin.definition_yaml = rows.Text();
    run.plugins.push_back(std::move(plugin));
  }
}

// The position in a listing of runs by a time.
struct Position {
  int64_t time = 0;
  std::string_view id;
};

absl::StatusOr<Position> ParsePosition(std::string_view token) {
  ASSIGN_OR_RETURN(const auto parts, ParsePageToken(token));
  Position position{0, parts.second};
  if (!absl::SimpleAtoi(ToAbsl(parts.first), &position.time)) return errors::InvalidPageToken();
  return position;
}

}  // namespace

std::optional<RunView> ReadRun(Connection& db, std::string_view run) {
  std::optional<RunView> view;
  {
    Rows rows = db.Query("SELECT " MUSTER_RUN_COLUMNS " FROM runs WHERE id = ?", run);
    if (rows.Next()) view = ParseRun(rows);
  }
  if (view) AddPlugins(db, view->run);
  return view;
}

absl::StatusOr<Page<RunRecord>> ReadRuns(Connection& db, std::string_view page_token, int limit) {
  Position before{INT64_MAX, "~"};  // after every id
  if (!page_token.empty()) {
    ASSIGN_OR_RETURN(before, ParsePosition(page_token));
  }
  limit = std::clamp(limit, 1, 1000);
  Page<RunRecord> page;
  {
    Rows rows = db.Query("SELECT " MUSTER_RUN_COLUMNS
                         " FROM runs WHERE (created_at, id) < (?, ?)"
                         " ORDER BY created_at DESC, id DESC LIMIT ?",
                         before.time, before.id, limit);
    while (rows.Next()) page.items.push_back(ParseRun(rows).run);
  }
  for (RunRecord& run : page.items) AddPlugins(db, run);
  if (static_cast<int>(page.items.size()) == limit) {
    page.next = MakePageToken(page.items.back().created_at, page.items.back().id);
  }
  return page;
}

std::vector<RunView> ReadLiveRuns(Connection& db) {
  std::vector<RunView> views;
  {
    Rows rows = db.Query("SELECT " MUSTER_RUN_COLUMNS
                         " FROM runs WHERE state < 4 UNION SELECT " MUSTER_RUN_COLUMNS
                         " FROM runs WHERE id IN (SELECT run FROM run_authorities)"
                         " ORDER BY created_at, id");
    while (rows.Next()) views.push_back(ParseRun(rows));
  }
  for (RunView& view : views) AddPlugins(db, view.run);
  return views;
}

absl::StatusOr<Page<FinishedRun>> ReadFinishedRuns(Connection& db, std::string_view page_token,
                                                   int limit) {
  Position after;
  if (!page_token.empty()) {
    ASSIGN_OR_RETURN(after, ParsePosition(page_token));
  }
  limit = std::clamp(limit, 1, 1000);
  Page<FinishedRun> page;
  Rows rows = db.Query(
      "SELECT id, title, ended_at, result_bytes + archive_size FROM runs"
      " WHERE state >= 4 AND pinned = 0 AND (ended_at, id) > (?, ?)"
      " ORDER BY ended_at, id LIMIT ?",
      after.time, after.id, limit);
  while (rows.Next()) {
    FinishedRun& run = page.items.emplace_back();
    run.id = rows.Text();
    run.title = rows.Text();
    run.ended_at = rows.Int();
    run.bytes = rows.Int();
  }
  if (static_cast<int>(page.items.size()) == limit) {
    page.next = MakePageToken(page.items.back().ended_at, page.items.back().id);
  }
  return page;
}

FinishedTotals CountFinishedRuns(Connection& db) {
  FinishedTotals totals;
  Rows rows = db.Query(
      "SELECT pinned, count(*), sum(result_bytes + archive_size) FROM runs WHERE state >= 4"
      " GROUP BY pinned");
  while (rows.Next()) {
    const bool pinned = rows.Bool();
    (pinned ? totals.pinned_runs : totals.runs) = rows.Int();
    (pinned ? totals.pinned_bytes : totals.bytes) = rows.Int();
  }
  return totals;
}

std::optional<RunAuthorityRecord> ReadAuthority(Connection& db, std::string_view run) {
  Rows rows = db.Query(
      "SELECT fleet_signed_pem, self_signed_pem, wrapped_key, ends_at FROM run_authorities"
      " WHERE run = ?",
      run);
  if (!rows.Next()) return std::nullopt;
  RunAuthorityRecord authority;
  authority.fleet_signed_pem = rows.Text();
  authority.self_signed_pem = rows.Text();
  authority.wrapped_key = rows.Text();
  authority.ends_at = rows.Int();
  return authority;
}

}  // namespace muster::sqlite
