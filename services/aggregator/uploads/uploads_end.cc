// The ends of uploads: with their run, and by expiry.
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/aggregator/uploads/uploads.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/upload/blob_names.h"

namespace muster {
namespace {

// Expired uploads that one sweep forgets.
constexpr int kSweepStep = 1000;

constexpr absl::Duration kStallLimit = absl::Seconds(60);

// Attempts to publish the partial data of a run. The run's seal is repeated every 5 seconds.
constexpr int kMaxKeepAttempts = 12;

// Runs `work` on the session's strand and waits for it. Strands run on a separate executor, so the
// task does not need the thread that waits here.
template <typename T>
absl::StatusOr<T> OnStrand(UploadSession& session, std::function<absl::StatusOr<T>()> work) {
  auto promise = std::make_shared<std::promise<absl::StatusOr<T>>>();
  auto future = promise->get_future();
  if (!session.strand().Post([promise, work = std::move(work)] { promise->set_value(work()); })) {
    return errors::Overloaded();
  }
  return future.get();
}

}  // namespace

void Uploads::EndRun(const std::string& run, const absl::Status& why) {
  for (const std::shared_ptr<UploadSession>& session : OfRun(run)) {
    OnStrand<bool>(*session, [&]() -> absl::StatusOr<bool> {
      session->Discard(why);
      return true;
    }).IgnoreError();
    Forget(session->id());
  }
  DiscardRestored(run);
  MutexLock lock(mutex_);
  failed_keeps_.erase(run);
}

absl::Status Uploads::EndUnawaited(const std::string& run, const absl::Status& why) {
  ASSIGN_OR_RETURN(const auto open, store_.OpenUploads(run));
  for (const UploadRecord& upload : open) {
    ASSIGN_OR_RETURN(const auto result, store_.GetResult(upload.key));
    if (result && !result->damage.empty()) continue;
    RETURN_IF_ERROR(AbandonStored(upload, why));
  }
  return absl::OkStatus();
}

// Removes the row of an upload: without it the upload can no longer be committed. If it had none,
// it was.
absl::Status Uploads::AbandonStored(const UploadRecord& upload, const absl::Status& why) {
  ASSIGN_OR_RETURN(const auto abandoned, store_.ApplyAndWait(AbandonUpload{upload.id}));
  if (abandoned.found) {
    Abandon(upload.id, upload, why);
  } else {
    Forget(upload.id);
  }
  return absl::OkStatus();
}

// Discards the bytes of uploads that were not opened since the start: they have no session.
void Uploads::DiscardRestored(const std::string& run) {
  for (const std::string& id : quota_.OfRun(run)) {
    {
      MutexLock lock(mutex_);
      if (sessions_.contains(id)) continue;
    }
    quota_.Remove(id);
    DiscardStaged(id);
  }
}

void Uploads::DiscardStaged(const std::string& id) {
  if (const absl::Status status = blobs_.DiscardStaged(id); !status.ok()) {
    Log(LogLevel::kWarning, "staged bytes are kept until the next start",
        {{"upload", id}, {"error", status}});
  }
}

// Returns the size of the published bytes; 0 if none had arrived.
absl::StatusOr<int64_t> Uploads::KeepPartial(const UploadRecord& upload, const std::string& name) {
  const std::shared_ptr<UploadSession> session = Session(upload);
  auto size = OnStrand<int64_t>(*session, [&] { return session->KeepPartial(name); });
  Forget(upload.id);
  if (!size.ok() || *size > 0) return size;
  // An earlier call may have published the bytes, and failed after that.
  auto published = blobs_.Size(name);
  if (absl::IsNotFound(published.status())) return 0;
  RETURN_IF_ERROR(blobs_.SyncName(name));
  return published;
}

// Counts a failed attempt to keep the partial data of a run.
bool Uploads::GivesUpPartials(const std::string& run) {
  MutexLock lock(mutex_);
  return ++failed_keeps_[run] >= kMaxKeepAttempts;
}

absl::StatusOr<std::vector<PartialData>> Uploads::KeepPartials(const std::string& run) {
  ASSIGN_OR_RETURN(const auto open, store_.OpenUploads(run));
  std::vector<PartialData> kept;
  for (const UploadRecord& upload : open) {
    const std::string name = PartialBlobName(run, upload.id);
    const auto size = KeepPartial(upload, name);
    if (absl::IsResourceExhausted(size.status())) return size.status();
    if (!size.ok()) {
      const bool lost = absl::IsDataLoss(size.status()) || absl::IsNotFound(size.status());
      if (!lost && !GivesUpPartials(run)) return size.status();
      Log(LogLevel::kError, "the partial data of a pair is lost",
          {{"run", run},
           {"plugin", upload.key.plugin},
           {"node", upload.key.node},
           {"error", size.status()}});
      DiscardStaged(upload.id);
      continue;
    }
    if (*size > 0) kept.push_back({upload.key.plugin, upload.key.node, name, *size});
  }
  MutexLock lock(mutex_);
  failed_keeps_.erase(run);
  return kept;
}

void Uploads::Sweep() {
  std::vector<std::shared_ptr<UploadSession>> sessions;
  {
    MutexLock lock(mutex_);
    std::erase_if(ids_, [this](const auto& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      const auto open = sessions_.find(id.second);
      if (!open->second.session->ended()) return false;
      sessions_.erase(open);
      quota_.Remove(id.second);
      return true;
    });
    for (const auto& [id, open] : sessions_) sessions.push_back(open.session);
  }
  for (const auto& session : sessions) {
    session->EndStalledStream(kStallLimit);
    session->CloseIdleFiles(kStallLimit);
    if (!session->attached()) quota_.Trim(session->id());
  }
  // Beyond those that a stream still carries.
  const auto expired = store_.ExpiredUploads(absl::ToUnixMicros(clock_.Now()),
                                             static_cast<int>(limits_.max_streams) + kSweepStep);
  if (!expired.ok()) {
    return Log(LogLevel::kError, "cannot list expired uploads", {{"error", expired.status()}});
  }
  for (const UploadRecord& upload : *expired) {
    const std::shared_ptr<UploadSession> session = Session(upload);
    if (session->attached()) continue;
    // A later sweep repeats what failed.
    AbandonStored(upload, errors::TakenOver(upload.id)).IgnoreError();
  }
}

}  // namespace muster
