#include "services/aggregator/runs/runs.h"

#include <algorithm>
#include <utility>

#include "services/aggregator/runs/plan.h"
#include "services/common/base/log.h"
#include "services/common/base/random_id.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/run_host.h"
#include "services/common/upload/blob_names.h"

namespace muster {
namespace {

constexpr size_t kMaxRequestId = 128;
constexpr size_t kMaxTitle = 256;
constexpr size_t kMaxReason = 1024;
constexpr size_t kRunIdBytes = 8;
constexpr absl::Duration kDefaultStartGrace = absl::Minutes(5);

absl::Status CheckLimits(const NewRun& wanted) {
  if (wanted.request_id.size() > kMaxRequestId) {
    return errors::TextTooLong("request_id", kMaxRequestId);
  }
  if (wanted.title.size() > kMaxTitle) return errors::TextTooLong("title", kMaxTitle);
  if (wanted.timeout < absl::Seconds(1) || wanted.timeout > absl::Hours(24 * 30)) {
    return errors::InvalidTimeout("timeout", wanted.timeout, "1 s to 30 days");
  }
  if (wanted.seal_grace < absl::ZeroDuration() || wanted.seal_grace > absl::Hours(1)) {
    return errors::InvalidTimeout("seal_grace", wanted.seal_grace, "0 s to 1 h");
  }
  if (wanted.start_grace &&
      (*wanted.start_grace < absl::ZeroDuration() || *wanted.start_grace > absl::Hours(24))) {
    return errors::InvalidTimeout("start_grace", *wanted.start_grace, "0 s to 1 day");
  }
  if (wanted.lost_after < absl::Seconds(10) || wanted.lost_after > absl::Hours(24)) {
    return errors::InvalidTimeout("lost_after", wanted.lost_after, "10 s to 1 day");
  }
  return absl::OkStatus();
}

// Legacy sidecars send nothing before they deliver, so a plan with one of them has no start grace.
absl::Duration StartGrace(const NewRun& wanted, const std::vector<PluginRecord>& plugins) {
  if (wanted.start_grace) return *wanted.start_grace;
  const bool sidecars = std::ranges::any_of(plugins, &PluginRecord::has_image);
  return sidecars ? absl::ZeroDuration() : kDefaultStartGrace;
}

}  // namespace

absl::StatusOr<RunRecord> Runs::Create(const NewRun& wanted) {
  RETURN_IF_ERROR(CheckLimits(wanted));
  ASSIGN_OR_RETURN(auto plan, MakePlan(wanted.plugins, wanted.nodes));
  CreateRun command;
  command.run.id = RandomHex(kRunIdBytes);
  const absl::Time now = clock_.Now();
  ASSIGN_OR_RETURN(command.authority, authorities_.NewRunAuthority(
                                          command.run.id, now + wanted.timeout, wanted.seal_grace));
  command.run.request_id = wanted.request_id;
  command.run.title = wanted.title;
  command.run.created_by = wanted.created_by.uri;
  command.vouched_by = wanted.created_by.vouched_by;
  command.run.created_at = absl::ToUnixMicros(now);
  command.run.deadline_at = absl::ToUnixMicros(now + wanted.timeout);
  command.run.seal_grace = absl::ToInt64Microseconds(wanted.seal_grace);
  command.run.start_grace = absl::ToInt64Microseconds(StartGrace(wanted, plan.plugins));
  command.run.lost_after = absl::ToInt64Microseconds(wanted.lost_after);
  command.run.fail_fast = wanted.fail_fast;
  command.run.listener.hosts = hosts_;
  if (!host_pattern_.empty()) {
    command.run.listener.hosts = {HostOfRun(host_pattern_, command.run.id)};
  }
  command.run.plugins = std::move(plan.plugins);
  command.pairs = std::move(plan.pairs);
  ASSIGN_OR_RETURN(const auto created, store_.ApplyAndWait(std::move(command)));
  if (!created.existed) {
    Log(LogLevel::kInfo, "run created", {{"run", created.run}, {"by", wanted.created_by.uri}});
  }
  return Get(created.run);
}

absl::StatusOr<RunRecord> Runs::Get(const std::string& run) {
  ASSIGN_OR_RETURN(auto view, store_.GetRun(run));
  if (!view) return errors::RunNotFound(run);
  return std::move(view->run);
}

absl::StatusOr<RunRecord> Runs::Cancel(const std::string& run, const std::string& reason,
                                       const Actor& actor) {
  if (reason.size() > kMaxReason) return errors::TextTooLong("reason", kMaxReason);
  EndRun command;
  command.run = run;
  command.state = RunState::kCancelled;
  command.reason = reason.empty() ? "cancelled by " + actor.uri : reason;
  command.actor = actor;
  command.at = absl::ToUnixMicros(clock_.Now());
  ASSIGN_OR_RETURN(const auto ended, store_.ApplyAndWait(std::move(command)));
  if (!ended.found) return errors::RunNotFound(run);
  if (ended.changed) {
    Log(LogLevel::kInfo, "run cancelled", {{"run", run}, {"by", actor.uri}});
    uploads_.EndRun(run, errors::RunCancelled(run));
  }
  return Get(run);
}

absl::StatusOr<RunRecord> Runs::Pin(const std::string& run, bool pinned, const Actor& actor) {
  ASSIGN_OR_RETURN(const auto outcome, store_.ApplyAndWait(PinRun{
                                           run, pinned, actor, absl::ToUnixMicros(clock_.Now())}));
  if (!outcome.found) return errors::RunNotFound(run);
  return Get(run);
}

absl::Status Runs::Delete(const std::string& run, const Actor& actor, const std::string& rule) {
  // Since the last start an upload may not have been opened again: it has no session then.
  ASSIGN_OR_RETURN(const auto open, store_.OpenUploads(run));
  ASSIGN_OR_RETURN(const auto deleted, store_.ApplyAndWait(DeleteRun{
                                           run, actor, absl::ToUnixMicros(clock_.Now()), rule}));
  if (!deleted.found) return errors::RunNotFound(run);
  if (!deleted.deleted) return errors::RunNotEnded(run);
  Log(LogLevel::kInfo, "run deleted", {{"run", run}, {"by", actor.uri}, {"rule", rule}});
  uploads_.EndRun(run, errors::RunNotFound(run));
  // The run does not exist any more: after a failure the caller cannot call this again.
  for (const UploadRecord& upload : open) {
    if (const absl::Status status = blobs_.DiscardStaged(upload.id); !status.ok()) {
      Log(LogLevel::kWarning, "staged bytes are kept until the next start",
          {{"upload", upload.id}, {"error", status}});
    }
  }
  if (const absl::Status status = blobs_.RemoveAll(RunBlobPrefix(run)); !status.ok()) {
    Log(LogLevel::kWarning, "the files of a deleted run are removed later",
        {{"run", run}, {"error", status}});
    blobs_left_ = true;
  }
  return absl::OkStatus();
}

absl::Status Runs::RemoveLeftBlobs() {
  if (!blobs_left_.exchange(false)) return absl::OkStatus();
  absl::Status status = RemoveBlobsOfUnknownRuns();
  if (!status.ok()) blobs_left_ = true;
  return status;
}

absl::Status Runs::RemoveBlobsOfUnknownRuns() {
  ASSIGN_OR_RETURN(const auto runs, blobs_.ListFolders(kRunBlobs));
  absl::Status first_failure;
  for (const std::string& run : runs) {
    // A run is recorded before it has blobs.
    ASSIGN_OR_RETURN(const auto view, store_.GetRun(run));
    if (view) continue;
    const absl::Status removed = blobs_.RemoveAll(RunBlobPrefix(run));
    if (removed.ok()) Log(LogLevel::kInfo, "removed the files of a deleted run", {{"run", run}});
    first_failure.Update(removed);
  }
  return first_failure;
}

}  // namespace muster
