#include "services/aggregator/runs/sealer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/aggregator/runs/archive_cursor.h"
#include "services/aggregator/runs/run_log.h"
#include "services/common/archive/archive_builder.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/random_id.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/string_source.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/plugin/plugin_definition.h"
#include "services/common/upload/blob_names.h"
#include "services/common/version.h"

namespace muster {
namespace {

// The limit of queued runs; more are tried again later.
constexpr size_t kMaxWaiting = 1024;

constexpr size_t kPiece = 1024 * 1024;

constexpr size_t kMaxFault = 1024;
constexpr std::string_view kDiskFull = "the disk has no space for the archive";

// Writes the archive into a staged blob in pieces of a suitable size.
class StagedSink : public ByteSink {
 public:
  StagedSink(StagedBlob& staged, const std::atomic<bool>& stopped)
      : staged_(staged), stopped_(stopped) {
    buffer_.reserve(kPiece);
  }

  absl::Status Write(std::string_view data) override {
    if (stopped_) return BuildCancelled();
    while (!data.empty()) {
      const size_t n = std::min(data.size(), kPiece - buffer_.size());
      buffer_.append(data.substr(0, n));
      data.remove_prefix(n);
      if (buffer_.size() < kPiece) break;
      RETURN_IF_ERROR(Flush());
    }
    return absl::OkStatus();
  }

  absl::Status Flush() {
    if (buffer_.empty()) return absl::OkStatus();
    const absl::Status status = staged_.Append(buffer_, Crc32c(buffer_));
    buffer_.clear();
    return status;
  }

 private:
  StagedBlob& staged_;
  const std::atomic<bool>& stopped_;
  std::string buffer_;
};

std::string FileName(const RunRecord& run) {
  return absl::StrCat(
      absl::FormatTime("%Y%m%d%H%M", absl::FromUnixMicros(run.created_at), absl::UTCTimeZone()),
      "_muster_", run.id, ".tar.gz");
}

absl::StatusOr<ArchiveRun> Describe(const RunRecord& run) {
  ArchiveRun described;
  described.id = run.id;
  described.title = run.title;
  described.muster_version = std::string(kVersion);
  described.created = absl::FromUnixMicros(run.created_at);
  described.timeout = absl::Microseconds(run.deadline_at - run.created_at);
  described.advertised_hosts = run.listener.hosts;
  for (const PluginRecord& plugin : run.plugins) {
    ASSIGN_OR_RETURN(const auto definition,
                     ParsePluginDefinition(plugin.definition_yaml, plugin.name));
    described.plugins.push_back({plugin.name, plugin.once, plugin.result_format,
                                 definition.result_files, plugin.definition_yaml});
  }
  return described;
}

}  // namespace

Sealer::Sealer(StateStore& store, BlobStore& blobs, Uploads& uploads, FileOps& files,
               std::string spool_folder, const Clock& clock, RedeliveryWait& redeliveries,
               std::string actor, std::function<void(const std::string&)> on_failure,
               Metrics& metrics, size_t threads)
    : store_(store),
      blobs_(blobs),
      uploads_(uploads),
      files_(files),
      spool_folder_(std::move(spool_folder)),
      clock_(clock),
      redeliveries_(redeliveries),
      actor_(std::move(actor)),
      on_failure_(std::move(on_failure)),
      seconds_(metrics.AddHistogram("muster_seal_seconds", "Time to build and store an archive.",
                                    LatencyBounds())),
      damaged_(metrics.AddCounter(
          "muster_seal_damaged_results_total",
          "Results whose stored bytes were damaged or unreadable when their run was sealed.")),
      executor_({"seal", threads, kMaxWaiting}) {}

absl::Duration Sealer::Seal(const std::string& run) {
  {
    const absl::Duration now = clock_.MonotonicNow();
    MutexLock lock(mutex_);
    std::erase_if(not_before_, [now](const auto& failed) { return failed.second <= now; });
    if (const auto it = not_before_.find(run); it != not_before_.end()) return it->second - now;
    const auto [it, added] = phases_.try_emplace(run, Phase::kQueued);
    if (!added) {
      if (it->second == Phase::kBuilding) it->second = Phase::kAgain;
      return absl::ZeroDuration();
    }
  }
  Post(run);
  return absl::ZeroDuration();
}

void Sealer::Post(const std::string& run) {
  if (executor_.Post([this, run] { BuildQueued(run); })) return;
  {
    MutexLock lock(mutex_);
    phases_.erase(run);
  }
  on_failure_(run);
}

void Sealer::BuildQueued(const std::string& run) {
  if (stopped_) return;
  {
    MutexLock lock(mutex_);
    phases_[run] = Phase::kBuilding;
  }
  const absl::Duration began = clock_.MonotonicNow();
  const absl::Status status = Build(run);
  if (!status.ok() && stopped_) {
    return Log(LogLevel::kInfo, "the archive is built after the next start",
               {{"run", run}, {"error", status}});
  }
  seconds_.Observe(absl::ToDoubleSeconds(clock_.MonotonicNow() - began));
  // After a change during the build the next build includes the change, and need not wait.
  const bool failed = !status.ok() && !absl::IsAborted(status);
  bool again = false;
  {
    MutexLock lock(mutex_);
    again = phases_[run] == Phase::kAgain && !failed;
    if (failed) not_before_[run] = clock_.MonotonicNow() + kSealRetry;
    if (again) {
      phases_[run] = Phase::kQueued;
    } else {
      phases_.erase(run);
    }
  }
  if (!status.ok()) ReportFault(run, status);
  if (again) {
    Post(run);
  } else if (!status.ok()) {
    on_failure_(run);
  }
}

void Sealer::ReportFault(const std::string& run, const absl::Status& why) {
  Log(LogLevel::kError, "cannot seal the run", {{"run", run}, {"error", why}});
  if (absl::IsAborted(why)) return;  // the next attempt includes what changed
  // Each other text is a change that every follower receives: the free bytes are in the log alone.
  const std::string fault(ReasonOf(why) == "DISK_FULL"
                              ? kDiskFull
                              : CutUtf8(CleanUtf8(ToStd(why.message())), kMaxFault));
  const auto reported =
      store_.ApplyAndWait(ReportSealFault{run, fault, absl::ToUnixMicros(clock_.Now())});
  if (!reported.ok()) {
    Log(LogLevel::kWarning, "the reason is not in the status of the run",
        {{"run", run}, {"error", reported.status()}});
  }
}

absl::Status Sealer::Build(const std::string& run) {
  ASSIGN_OR_RETURN(auto partial, uploads_.KeepPartials(run));
  const int64_t now = absl::ToUnixMicros(clock_.Now());
  ASSIGN_OR_RETURN(const auto kept,
                   store_.ApplyAndWait(KeepPartials{run, std::move(partial), now}));
  for (const std::string& blob : kept.unused) blobs_.Remove(blob).IgnoreError();
  ASSIGN_OR_RETURN(const auto view, store_.GetRun(run));
  if (!view || view->run.state != RunState::kPostProcessing) return absl::OkStatus();
  // The archive of an earlier build, if a crash or an error came before the run was sealed with it.
  RETURN_IF_ERROR(blobs_.RemoveAll(ArchiveBlobPrefix(run)));

  const std::string build = RandomHex(16);
  ASSIGN_OR_RETURN(auto staged, blobs_.Stage(build, -1));
  ArchiveRecord archive;
  const auto damaged = WriteArchive(*view, *staged, &archive);
  absl::Status status = damaged.status();
  if (status.ok() && *damaged > 0) status = HandleDamage(view->run, *damaged);
  if (status.ok()) status = staged->Publish(ArchiveBlobName(run, build));
  if (!status.ok()) {
    staged->Discard().IgnoreError();
    return status;
  }
  archive.blob = ArchiveBlobName(run, build);
  archive.created_at = absl::ToUnixMicros(clock_.Now());
  ASSIGN_OR_RETURN(const auto sealed, store_.ApplyAndWait(SealRun{run, archive, view->last_change,
                                                                  archive.created_at, actor_}));
  if (sealed.changed) {
    Log(LogLevel::kInfo, "run sealed", {{"run", run}, {"bytes", archive.size}});
    return absl::OkStatus();
  }
  // A result was committed meanwhile, or the run ended: the archive is outdated.
  blobs_.Remove(archive.blob).IgnoreError();
  return absl::AbortedError("the run changed while its archive was built");
}

// Fails while nodes have time to deliver the damaged results again.
absl::Status Sealer::HandleDamage(const RunRecord& run, int64_t damaged) {
  ASSIGN_OR_RETURN(const absl::Duration wait, redeliveries_.Verify(run, read_failures_, stopped_));
  if (wait > absl::ZeroDuration()) {
    return absl::AbortedError(absl::StrCat(damaged,
                                           " stored results are damaged, and are requested"
                                           " from their nodes again"));
  }
  damaged_.Add(static_cast<double>(damaged));
  Log(LogLevel::kError, "stored results are damaged: the archive marks them",
      {{"run", run.id}, {"results", damaged}});
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Sealer::WriteArchive(const RunView& view, StagedBlob& staged,
                                             ArchiveRecord* archive) {
  ASSIGN_OR_RETURN(auto described, Describe(view.run));
  ASSIGN_OR_RETURN(auto log, RunLog(store_, view.run.id));
  described.run_log_size = static_cast<int64_t>(log.size());
  StringSource log_source(std::move(log));
  described.run_log = &log_source;
  ASSIGN_OR_RETURN(auto spool, files_.CreateUnnamed(spool_folder_));
  ArchiveCursor cursor(store_, blobs_, view.run.id, read_failures_, stopped_);
  StagedSink sink(staged, stopped_);
  ASSIGN_OR_RETURN(const auto report, BuildArchive(described, cursor, std::move(spool), sink));
  RETURN_IF_ERROR(sink.Flush());
  archive->file_name = FileName(view.run);
  archive->size = report.archive.size;
  archive->sha256 = FromHex(report.archive.sha256).value_or("");
  return report.damaged;
}

}  // namespace muster
