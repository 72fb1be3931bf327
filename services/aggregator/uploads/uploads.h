// All open uploads.
#ifndef MUSTER_SERVICES_AGGREGATOR_UPLOADS_UPLOADS_H_
#define MUSTER_SERVICES_AGGREGATOR_UPLOADS_UPLOADS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/aggregator/uploads/committer.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/blob/blob_store.h"
#include "services/common/store/state_store.h"
#include "services/common/upload/upload_session.h"

namespace muster {

// What an opened upload is told.
struct OpenedUpload {
  std::string id;
  int64_t epoch = 0;
  int64_t offset = 0;
  int64_t chunk_max = 0;
  int64_t expires_at = 0;
  std::optional<ResultRecord> committed;  // set: there is nothing to send
};

// Thread-safe. Its methods may wait for the disk: call them on an executor other than `disk`, on
// which the sessions work.
class Uploads {
 public:
  struct Limits {
    int64_t max_uploads = 10'000;  // sessions in memory
    int64_t max_streams = 1'000;   // streams at a time
    absl::Duration expiry = absl::Hours(24);
  };

  Uploads(StateStore& store, BlobStore& blobs, Committer& committer, Executor& disk,
          const Clock& clock, Limits limits);

  // Discards staged bytes that no upload in the store knows: what a crash between the two left.
  // Before the first Open.
  absl::Status Recover();

  // Opens or takes over for `opener`. `upload` names key, attempt, size and the rest; id, epoch and
  // times are set here. `signed_at`: as in VerifiedResult.
  absl::StatusOr<OpenedUpload> Open(UploadRecord upload, const UploadPeer& opener,
                                    std::optional<absl::Time> signed_at = std::nullopt);

  // The session of an upload that was opened since this process began; else UPLOAD_NOT_FOUND.
  absl::StatusOr<std::shared_ptr<UploadSession>> Find(std::string_view id) const;

  // Forgets a session whose result is committed.
  void Forget(const std::string& id);

  // Ends every upload of a run that was cancelled, deleted or sealed.
  void EndRun(const std::string& run, const absl::Status& why);

  // Ends every upload of a run and publishes what had arrived.
  absl::StatusOr<std::vector<PartialData>> KeepPartials(const std::string& run);

  // Ends streams that bring nothing and forgets uploads that have expired. To be called every few
  // seconds.
  void Sweep();

  // Whether a stream brings something of this run now.
  bool Receives(const std::string& run) const;

  // Streams that are attached now.
  int64_t streams() const { return streams_; }

  // Counts a stream in; RESOURCE_EXHAUSTED (TOO_MANY_UPLOADS) if there are too many.
  absl::Status AddStream();
  void RemoveStream() { --streams_; }

 private:
  std::shared_ptr<UploadSession> Session(const UploadRecord& upload) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<OpenedUpload> AlreadyThere(const UploadRecord& upload,
                                            const ResultRecord& committed);
  void Abandon(const std::string& id, const UploadRecord& upload);
  std::vector<std::shared_ptr<UploadSession>> OfRun(const std::string& run) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  StateStore& store_;
  BlobStore& blobs_;
  Committer& committer_;
  Executor& disk_;
  const Clock& clock_;
  const Limits limits_;
  std::atomic<int64_t> streams_ = 0;
  mutable Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<UploadSession>> sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_UPLOADS_UPLOADS_H_
