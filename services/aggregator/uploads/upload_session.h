// One upload: from the first byte to the commit.
//
// This is where a chunk is verified, written and hashed (Append), and where a result becomes one
// (Complete): bytes durable, then the row in one transaction, then the answer.
#ifndef MUSTER_SERVICES_AGGREGATOR_UPLOADS_UPLOAD_SESSION_H_
#define MUSTER_SERVICES_AGGREGATOR_UPLOADS_UPLOAD_SESSION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/aggregator/uploads/committer.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/sha256.h"
#include "services/common/blob/blob_store.h"
#include "services/common/store/records.h"

namespace muster {

// A piece of an upload as it came off the wire.
struct UploadChunk {
  int64_t offset = 0;
  int64_t raw_size = 0;
  uint32_t crc32c = 0;  // of the raw bytes
  bool zstd = false;    // `data` is one zstd frame
  std::string data;
};

// What is safe of an upload.
struct UploadAck {
  int64_t written = 0;
  int64_t durable = 0;
};

// What the sender says at the end.
struct UploadFinish {
  int64_t size = 0;
  uint32_t crc32c = 0;
  std::string sha256;  // 32 bytes, or empty
  std::string signature;
  std::string signer_chain_pem;
};

// Thread-safe where it says so; all else runs on the session's strand, one call at a time.
class UploadSession {
 public:
  using Committed = absl::AnyInvocable<void(absl::StatusOr<ResultRecord>)>;

  UploadSession(UploadRecord upload, BlobStore& blobs, ResultSink& sink, Executor& executor,
                const Clock& clock);

  const std::string& id() const { return id_; }
  const ResultKey& key() const { return key_; }

  // The strand for everything below. Thread-safe.
  Strand& strand() { return strand_; }

  // Takes what a later open said: its epoch rises, and a stream that was attached before is told so
  // (its `on_detached` runs, once). Opens the staged bytes, or makes them. Returns the offset.
  // `signed_at`: as in VerifiedResult.
  absl::StatusOr<int64_t> Reopen(const UploadRecord& upload,
                                 std::optional<absl::Time> signed_at = std::nullopt);

  // A stream takes hold of the session with the epoch of its open. ABORTED (TAKEN_OVER) if a later
  // open was there. `on_detached` must not block.
  absl::Status Attach(int64_t epoch, std::function<void(absl::Status)> on_detached);

  // The stream has ended: files are closed until the next open. Ignored for a lower epoch.
  void Detach(int64_t epoch);

  // Verifies and stores one chunk.
  absl::StatusOr<UploadAck> Append(int64_t epoch, UploadChunk chunk);

  // Verifies the whole, makes it durable, commits it. `committed` runs once, on any thread.
  void Complete(int64_t epoch, const UploadFinish& finish, Committed committed);

  // Ends the attached stream with `why`, and the upload with it.
  void Discard(const absl::Status& why);

  // The upload is over: what is staged is removed, later calls are UPLOAD_NOT_FOUND.
  void Close();

  // Publishes what is there under `name`, as the partial data of a pair that timed out; returns its
  // size, 0 if there was nothing. Ends the upload.
  absl::StatusOr<int64_t> KeepPartial(const std::string& name);

  // The time since the stream last brought 64 KiB; zero while no stream is attached. Thread-safe.
  absl::Duration StalledFor() const;

  // Ends the attached stream with `why`; the upload stays open. Thread-safe.
  void EndStream(const absl::Status& why);

  // Whether a stream is attached. Thread-safe.
  bool attached() const { return attached_; }

 private:
  absl::Status CheckEpoch(int64_t epoch) const;
  absl::Status OpenStaged();
  absl::Status HashAgain();
  absl::StatusOr<std::string> RawBytes(UploadChunk chunk) const;
  absl::Status CheckOverlap(const UploadChunk& chunk, const std::string& raw) const;
  absl::Status VerifyWhole(const UploadFinish& finish, int64_t size,
                           const std::string& sha256) const;
  absl::StatusOr<std::string> Head(int64_t limit);
  absl::Status StoreBytes(ResultRecord* result);
  void NoteProgress(int64_t bytes);

  const std::string id_;
  const ResultKey key_;
  BlobStore& blobs_;
  ResultSink& sink_;
  const Clock& clock_;
  Strand strand_;

  UploadRecord upload_;
  std::optional<absl::Time> signed_at_;
  std::unique_ptr<StagedBlob> staged_;
  std::optional<int64_t> published_;  // size, if a crash came between publishing and committing
  Sha256 sha256_;
  int64_t hashed_ = 0;  // bytes that sha256_ has seen
  bool ended_ = false;
  bool completing_ = false;

  mutable Mutex stream_mutex_;
  std::function<void(absl::Status)> on_detached_ ABSL_GUARDED_BY(stream_mutex_);
  std::atomic<bool> attached_ = false;
  std::atomic<int64_t> progress_at_ = 0;  // monotonic nanoseconds
  int64_t since_progress_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_UPLOADS_UPLOAD_SESSION_H_
