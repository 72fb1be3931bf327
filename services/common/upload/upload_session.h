// One upload: from the first byte to the commit.
//
// Append verifies, writes and hashes a chunk. Complete commits the result: bytes durable, then the
// row in one transaction, then the answer.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_SESSION_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_SESSION_H_

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
#include "services/common/base/clock.h"
#include "services/common/blob/blob_store.h"
#include "services/common/identity/rpc_authorization.h"
#include "services/common/rpc/open_streams.h"
#include "services/common/store/records.h"
#include "services/common/upload/fair_strand.h"
#include "services/common/upload/result_sink.h"
#include "services/common/upload/upload_attachment.h"
#include "services/common/upload/upload_bytes.h"
#include "services/common/upload/upload_chunk.h"

namespace muster {

// The acknowledged parts of an upload: they survive the loss of the process, or of power.
struct UploadAck {
  int64_t written = 0;
  int64_t durable = 0;
};

// The last message of the sender.
struct UploadFinish {
  int64_t size = 0;
  std::optional<uint32_t> crc32c;
  std::string sha256;  // 32 bytes, or empty
  std::string signature;
  std::string signer_chain_pem;
};

// The caller that opens an upload, or whose stream carries it. A plain value.
struct UploadPeer {
  Identity identity;
  std::optional<Identity> via;  // the gateway or relay that forwards for it
  bool operator==(const UploadPeer&) const = default;
};

inline UploadPeer PeerOf(const Caller& caller) { return {caller.identity, caller.via}; }

// At most one stream is attached at a time, and at most one completion is in progress. Methods run
// on the session's strand, one call at a time, unless they are marked as thread-safe.
class UploadSession : public std::enable_shared_from_this<UploadSession> {
 public:
  using Committed = absl::AnyInvocable<void(absl::StatusOr<ResultRecord>)>;
  // Counts a stream for as long as the ticket exists, or refuses it.
  using CountStream = std::function<absl::StatusOr<UploadTicket>()>;

  // Its tasks run in turn with those of other senders.
  UploadSession(UploadRecord upload, BlobStore& blobs, ResultSink& sink, Executor& executor,
                const Clock& clock);

  const std::string& id() const { return id_; }
  const ResultKey& key() const { return key_; }

  // The strand for everything below. Thread-safe.
  FairStrand& strand() { return strand_; }

  // Handles a later open: the epoch rises, and the attached stream is detached with TAKEN_OVER.
  // Opens the staged bytes, or creates them. Returns the offset. A completion in progress does not
  // prevent this: the sink refuses the lower epoch. From now on only streams of `opener` may
  // attach. `signed_at`: as in VerifiedResult. `reclaimed`: as in OpenUpload::Result. NOT_FOUND
  // (UPLOAD_NOT_FOUND) if the upload has ended, also by this call because more bytes are stored
  // than `upload` announces. Bytes of the owner (UploadRecord::proven) remain: another sender that
  // announces fewer fails with DATA_LOSS (SIZE_MISMATCH), and the bytes that others have stored
  // after them are removed if they are too many, or if the upload is reclaimed.
  absl::StatusOr<int64_t> Reopen(const UploadRecord& upload, const UploadPeer& opener,
                                 std::optional<absl::Time> signed_at = std::nullopt,
                                 bool reclaimed = false);

  // Attaches a stream of `peer` with the epoch of its open. The stream that was attached before is
  // detached with TAKEN_OVER: its `on_detached` runs, once, and its later calls fail. Its ticket is
  // released before `count` is called, so a sender at its limit can resume its uploads before the
  // loss of its old connection is noticed. NOT_FOUND (UPLOAD_NOT_FOUND) if another opened the
  // upload; ABORTED (TAKEN_OVER) if a later open exists; UNAVAILABLE (UPLOAD_COMPLETING) while a
  // completion is in progress; or the error of `count`. `on_detached` must not block.
  absl::StatusOr<UploadAttachment> Attach(int64_t epoch, const UploadPeer& peer,
                                          std::function<void(absl::Status)> on_detached,
                                          const CountStream& count = nullptr);

  // The stream has ended: files are closed until the next attach. Ignored for a stream that was
  // taken over.
  void Detach(const UploadAttachment& attachment);

  // Closes files that were opened for a stream, if none is attached.
  void CloseFiles();

  // Verifies and stores one chunk. ABORTED (TAKEN_OVER) unless the stream is attached. A write or a
  // sync that fails detaches the stream with the error; the next one resumes the stored bytes.
  absl::StatusOr<UploadAck> Append(const UploadAttachment& attachment, UploadChunk chunk);

  // Verifies the whole and its signature, makes it durable, commits it. `committed` runs once, on
  // any thread. ABORTED (TAKEN_OVER) unless the stream is attached; UNAVAILABLE (UPLOAD_COMPLETING)
  // while a completion is in progress. Bytes that were stored before a restart are hashed in
  // steps, each a task of the strand. A refusal for another content (RESULT_CONFLICT), or because
  // the run has no space for it (RUN_FULL), ends the upload. So do stored bytes that are not those
  // of the sender: DATA_LOSS with the difference, or NOT_FOUND (UPLOAD_NOT_FOUND: open the upload
  // again) if another sender or process stored some of them. If bytes are missing, the upload
  // continues.
  void Complete(const UploadAttachment& attachment, const UploadFinish& finish,
                Committed committed);

  // Ends the attached stream with `why`, and the upload with it. Removes its bytes, also those that
  // were published, unless a completion is in progress or has succeeded: the sink decides then. To
  // be called once the upload can no longer be committed.
  void Discard(const absl::Status& why);

  // Ends the upload: staged bytes are removed, and later calls fail with UPLOAD_NOT_FOUND.
  void Close();

  // Publishes the stored bytes under `name`, as the partial data of a pair that timed out. Returns
  // their number. Ends the upload.
  absl::StatusOr<int64_t> KeepPartial(const std::string& name);

  // The time since the stream last brought 64 KiB; zero while no stream is attached. Thread-safe.
  absl::Duration StalledFor() const { return stream_.StalledFor(); }

  // Ends the attached stream with UPLOAD_STALLED if it has been stalled for longer than `limit`;
  // the upload stays open. Thread-safe.
  void EndStalledStream(absl::Duration limit) { stream_.EndStalled(limit); }

  // Returns whether a stream is attached. Thread-safe.
  bool attached() const { return stream_.attached(); }

  // Returns whether the upload is over. Thread-safe.
  bool ended() const { return ended_; }

  // The time for which files have been open without a stream; zero if none are. Thread-safe.
  absl::Duration FilesIdleFor() const;

  // Closes files that have been open without a stream for longer than `limit`; the next stream
  // opens them again. Returns immediately: the strand closes them. Thread-safe.
  void CloseIdleFiles(absl::Duration limit);

 private:
  // The bytes at the first open without a proof since the last one with it.
  struct OwnedBytes {
    int64_t size = 0;
    uint32_t crc32c = 0;
  };

  absl::Status CheckAttached(const UploadAttachment& attachment) const;
  void CloseStaged();
  bool Exceeds(int64_t size) const;
  void EndMismatched();
  void NoteOwned();
  absl::Status KeepOwned(const UploadRecord& upload);
  absl::Status RemoveBytesAfter(const OwnedBytes& owned);
  void CompletionFailed(const UploadAttachment& attachment, const absl::Status& why);
  absl::Status StagedFailed(const absl::Status& status);
  void RemovePublished();
  absl::Status OpenStaged();
  uint32_t crc32c() const { return published_ ? published_crc32c_ : staged_->crc32c(); }
  int64_t written() const { return published_ ? *published_ : staged_->written(); }
  absl::Status HashStep();
  void CompleteHashed(const UploadAttachment& attachment, const UploadFinish& finish,
                      Committed committed);
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
  FairStrand strand_;

  UploadRecord upload_;
  std::optional<UploadPeer> opener_;  // of the last Reopen
  bool inherited_ = false;  // bytes were staged before the calls of opener_: they may be any
  // Absent: an upload that another sender began, or that was opened before a restart.
  std::optional<OwnedBytes> owned_;
  std::optional<absl::Time> signed_at_;
  std::unique_ptr<StagedBlob> staged_;
  std::optional<int64_t> published_;  // size, if a crash came between publishing and committing
  uint32_t published_crc32c_ = 0;     // of the bytes of the published blob that hash_ covers
  UploadHash hash_;                   // of at most written() bytes
  int64_t since_progress_ = 0;

  // Thread-safe.
  AttachedStream stream_;
  std::atomic<bool> ended_ = false;
  std::atomic<bool> files_open_ = false;  // staged_ is set
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_SESSION_H_
