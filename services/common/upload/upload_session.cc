#include "services/common/upload/upload_session.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/upload/blob_names.h"
#include "services/common/upload/error_reason.h"

namespace muster {
namespace {

// Tasks that wait on one session: the pipeline of one stream, and take-overs.
constexpr size_t kMaxStrandQueue = 64;

// A stream counts as alive if it sends this many bytes within the stall limit.
constexpr int64_t kProgressBytes = 64 * 1024;

// The size of one step of hashing bytes that were stored before a restart: some ten milliseconds.
constexpr int64_t kHashStep = 8 * 1024 * 1024;

// The sender whose share of the threads an upload uses. A relay knows only the node.
std::string OwnerOf(const UploadRecord& upload) {
  return upload.delivery.uri.empty() ? upload.key.node : upload.delivery.uri;
}

}  // namespace

UploadSession::UploadSession(UploadRecord upload, BlobStore& blobs, ResultSink& sink,
                             Executor& executor, const Clock& clock)
    : id_(upload.id),
      key_(upload.key),
      blobs_(blobs),
      sink_(sink),
      strand_(executor, OwnerOf(upload), kMaxStrandQueue),
      upload_(std::move(upload)),
      stream_(clock) {}

absl::StatusOr<int64_t> UploadSession::Reopen(const UploadRecord& upload, const UploadPeer& opener,
                                              std::optional<absl::Time> signed_at, bool reclaimed) {
  if (ended()) return errors::UploadNotFound(id_);
  if (upload.epoch < upload_.epoch) return errors::TakenOver(id_);
  stream_.Release(errors::TakenOver(id_));
  const bool same_opener = opener_ == opener;
  opener_.reset();  // after a failure no stream attaches
  const bool was_owned = upload_.proven;
  upload_ = upload;
  signed_at_ = signed_at;
  stream_.ResetCompleting();
  RETURN_IF_ERROR(OpenStaged());
  if (was_owned && !upload.proven) NoteOwned();
  if (reclaimed || Exceeds(upload.size)) RETURN_IF_ERROR(KeepOwned(upload));
  if (upload.proven) owned_.reset();
  if (!same_opener) inherited_ = !published_ && written() > 0;
  opener_ = opener;
  return written();
}

// The owner of the pair has stored these bytes; others may follow.
void UploadSession::NoteOwned() {
  owned_.reset();
  if (!published_) owned_ = OwnedBytes{staged_->written(), staged_->crc32c()};
}

// Removes the bytes that senders without a proof have stored after those of the owner. If it is not
// known which these are, the upload ends.
absl::Status UploadSession::KeepOwned(const UploadRecord& upload) {
  if (owned_ && !published_) {
    // The sender need not be one that the owner knows.
    if (!upload.proven && upload.size >= 0 && upload.size < owned_->size) {
      return errors::SizeMismatch(upload.size, owned_->size);
    }
    RETURN_IF_ERROR(RemoveBytesAfter(*owned_));
    if (!Exceeds(upload.size)) return absl::OkStatus();
  }
  if (written() == 0) return absl::OkStatus();
  EndMismatched();
  return errors::UploadNotFound(id_);
}

absl::Status UploadSession::RemoveBytesAfter(const OwnedBytes& owned) {
  if (written() <= owned.size) return absl::OkStatus();
  if (const absl::Status status = staged_->Truncate(owned.size, owned.crc32c); !status.ok()) {
    CloseStaged();
    return status;
  }
  hash_.Shorten(owned.size);
  sink_.Release(id_);
  return owned.size == 0 ? absl::OkStatus() : sink_.Reserve(id_, owned.size);
}

// Returns whether the stored bytes cannot become a result of this size.
bool UploadSession::Exceeds(int64_t size) const {
  if (size < 0) return false;
  return published_ ? *published_ != size : written() > size;
}

// The stored bytes are not those of the sender: a later open must not find them.
void UploadSession::EndMismatched() {
  LogLimited(LogLevel::kWarning, "stored bytes are not those of their sender and are removed",
             key_.node, {{"upload", id_}, {"run", key_.run}, {"node", key_.node}});
  if (published_) RemovePublished();
  Close();
  sink_.Release(id_);
}

// The staged bytes of an earlier stream or process; or, after a crash between publishing and
// committing, the published blob; or a new file.
absl::Status UploadSession::OpenStaged() {
  if (staged_ != nullptr || published_) return absl::OkStatus();
  auto staged = blobs_.Resume(id_);
  if (absl::IsNotFound(staged.status())) {
    const std::string name = ResultBlobName(key_.run, id_);
    const auto size = blobs_.Size(name);
    if (size.ok()) {
      RETURN_IF_ERROR(blobs_.SyncName(name));
      published_ = *size;
      return absl::OkStatus();
    }
    if (!absl::IsNotFound(size.status())) return size.status();
    staged = blobs_.Stage(id_, upload_.size);
  }
  if (!staged.ok()) return staged.status();
  staged_ = *std::move(staged);
  files_open_ = true;
  stream_.NoteOpened();
  hash_.Shorten(staged_->written());
  return absl::OkStatus();
}

absl::Status UploadSession::CheckAttached(const UploadAttachment& attachment) const {
  if (ended_) return errors::UploadNotFound(id_);
  return stream_.IsAttached(attachment) ? absl::OkStatus() : errors::TakenOver(id_);
}

absl::StatusOr<UploadAttachment> UploadSession::Attach(
    int64_t epoch, const UploadPeer& peer, std::function<void(absl::Status)> on_detached,
    const CountStream& count) {
  if (ended_ || opener_ != peer) return errors::UploadNotFound(id_);
  if (epoch != upload_.epoch) return errors::TakenOver(id_);
  if (stream_.completing()) return errors::UploadCompleting(id_);
  stream_.Release(errors::TakenOver(id_));
  UploadTicket ticket;
  if (count) {
    ASSIGN_OR_RETURN(ticket, count());
  }
  RETURN_IF_ERROR(OpenStaged());
  since_progress_ = 0;
  return stream_.Attach(std::move(on_detached), std::move(ticket));
}

// The hash stays: the next stream continues it.
void UploadSession::Detach(const UploadAttachment& attachment) {
  if (stream_.Detach(attachment)) CloseStaged();
}

void UploadSession::CloseFiles() {
  if (!attached()) CloseStaged();
}

void UploadSession::CloseStaged() {
  staged_.reset();
  files_open_ = false;
}

absl::Duration UploadSession::FilesIdleFor() const {
  return files_open_ ? stream_.UnattachedFor() : absl::ZeroDuration();
}

void UploadSession::CloseIdleFiles(absl::Duration limit) {
  if (FilesIdleFor() <= limit) return;
  // After a refusal the caller's next sweep tries again.
  std::ignore = strand_.Post([self = shared_from_this()] { self->CloseFiles(); });
}

void UploadSession::NoteProgress(int64_t bytes) {
  since_progress_ += bytes;
  if (since_progress_ < kProgressBytes) return;
  since_progress_ = 0;
  stream_.NoteProgress();
}

// A chunk below the offset was stored before: harmless if it announces the same.
absl::Status UploadSession::CheckOverlap(const UploadChunk& chunk, const std::string& raw) const {
  if (published_) return absl::OkStatus();  // the whole is verified again when it is completed
  ASSIGN_OR_RETURN(auto source, staged_->Read(chunk.offset));
  ASSIGN_OR_RETURN(const auto stored, ReadUpTo(*source, raw.size()));
  return stored == raw ? absl::OkStatus()
                       : errors::InvalidChunk("other bytes were stored at its offset");
}

absl::StatusOr<UploadAck> UploadSession::Append(const UploadAttachment& attachment,
                                                UploadChunk chunk) {
  RETURN_IF_ERROR(CheckAttached(attachment));
  if (stream_.completing()) return errors::InvalidChunk("it follows the finish");
  const int64_t written = this->written();
  if (chunk.offset < 0 || chunk.offset > INT64_MAX - chunk.raw_size) {
    return errors::InvalidOffset(chunk.offset);
  }
  if (chunk.offset > written) return errors::OffsetTooHigh(chunk.offset, written);
  const int64_t offset = chunk.offset;
  const uint32_t crc = chunk.crc32c;
  ASSIGN_OR_RETURN(auto raw, RawBytes(std::move(chunk)));
  if (Crc32c(raw) != crc) return errors::CrcMismatch("chunk");
  NoteProgress(static_cast<int64_t>(raw.size()));
  if (offset < written) {
    if (offset + static_cast<int64_t>(raw.size()) > written) {
      return errors::InvalidChunk("it begins before the offset and ends after it");
    }
    UploadChunk header;
    header.offset = offset;
    RETURN_IF_ERROR(CheckOverlap(header, raw));
    return UploadAck{written, published_ ? *published_ : staged_->durable()};
  }
  if (published_) return errors::InvalidChunk("the upload is already complete");
  // After a restart each chunk brings the hash closer; Complete hashes the rest.
  RETURN_IF_ERROR(HashStep());
  RETURN_IF_ERROR(sink_.Reserve(id_, written + static_cast<int64_t>(raw.size())));
  RETURN_IF_ERROR(StagedFailed(staged_->Append(raw, crc)));
  if (hash_.size() == written) hash_.Update(raw);
  return UploadAck{staged_->written(), staged_->durable()};
}

// A file takes no more bytes after a failed write or sync, but after one that found a full disk.
// Ends the stream then, so that the next one resumes the file. Returns `status`.
absl::Status UploadSession::StagedFailed(const absl::Status& status) {
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  stream_.Release(status);
  CloseStaged();
  return status;
}

// Hashes some of the stored bytes that were not hashed yet.
absl::Status UploadSession::HashStep() {
  const int64_t end = std::min(written(), hash_.size() + kHashStep);
  if (hash_.size() == end) return absl::OkStatus();
  ASSIGN_OR_RETURN(auto source, published_
                                    ? blobs_.Open(ResultBlobName(key_.run, id_), hash_.size())
                                    : staged_->Read(hash_.size()));
  RETURN_IF_ERROR(hash_.Read(*source, end, published_ ? &published_crc32c_ : nullptr));
  NoteProgress(kProgressBytes);
  return absl::OkStatus();
}

absl::Status UploadSession::VerifyWhole(const UploadFinish& finish, int64_t size,
                                        const std::string& sha256) const {
  if (finish.size != size) return errors::SizeMismatch(finish.size, size);
  if (upload_.size >= 0 && upload_.size != size) return errors::SizeMismatch(upload_.size, size);
  if (finish.crc32c && crc32c() != *finish.crc32c) {
    return errors::CrcMismatch("whole");
  }
  for (const std::string& named : {finish.sha256, upload_.sha256}) {
    if (!named.empty() && named != sha256) return errors::DigestMismatch();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> UploadSession::Head(int64_t limit) {
  ASSIGN_OR_RETURN(auto source,
                   published_ ? blobs_.Open(ResultBlobName(key_.run, id_), 0) : staged_->Read(0));
  return ReadUpTo(*source, static_cast<size_t>(limit));
}

void UploadSession::Complete(const UploadAttachment& attachment, const UploadFinish& finish,
                             Committed committed) {
  if (const absl::Status status = CheckAttached(attachment); !status.ok()) return committed(status);
  if (stream_.completing()) return committed(errors::UploadCompleting(id_));
  if (const absl::Status status = HashStep(); !status.ok()) return committed(status);
  if (hash_.size() == written()) return CompleteHashed(attachment, finish, std::move(committed));
  // Other tasks of the strand, and other strands, run before the next step.
  auto shared = std::make_shared<Committed>(std::move(committed));
  const bool queued = strand_.Post([self = shared_from_this(), attachment, finish, shared] {
    self->Complete(attachment, finish, std::move(*shared));
  });
  if (!queued) (*shared)(errors::Overloaded());
}

void UploadSession::CompleteHashed(const UploadAttachment& attachment, const UploadFinish& finish,
                                   Committed committed) {
  const int64_t size = hash_.size();
  const std::string sha256 = hash_.Finish();
  if (const absl::Status status = VerifyWhole(finish, size, sha256); !status.ok()) {
    // More bytes may follow, unless they were published.
    if (!published_ && finish.size > size) return committed(status);
    EndMismatched();
    // The sender may not have sent the bytes that differ.
    return committed(inherited_ ? errors::UploadNotFound(id_) : status);
  }
  VerifiedResult verified;
  verified.upload_id = id_;
  verified.epoch = upload_.epoch;
  verified.attempt = upload_.attempt;
  verified.signed_at = signed_at_;
  ResultRecord& result = verified.result;
  result.key = key_;
  result.outcome = upload_.is_error ? Outcome::kError : Outcome::kGenuine;
  result.size = size;
  result.crc32c = crc32c();
  result.sha256 = sha256;
  result.media_type = upload_.media_type;
  result.file_name = upload_.file_name;
  result.delivery = upload_.delivery;
  result.delivery.signature = finish.signature;
  result.delivery.signer_pem = finish.signer_chain_pem;
  // Before the bytes are published: after a refusal the upload continues as it was.
  if (const absl::Status status = sink_.CheckSignature(verified); !status.ok()) {
    return committed(status);
  }
  if (const absl::Status status = StoreBytes(&result); !status.ok()) return committed(status);
  stream_.SetCompleting(attachment);
  sink_.Commit(std::move(verified),
               [self = shared_from_this(), attachment,
                committed = std::move(committed)](absl::StatusOr<ResultRecord> result) mutable {
                 if (!result.ok()) self->CompletionFailed(attachment, result.status());
                 committed(std::move(result));
               });
}

// The upload may be completed again, unless a later open has changed that, or the sink has ended
// it with this refusal.
void UploadSession::CompletionFailed(const UploadAttachment& attachment, const absl::Status& why) {
  const std::string reason = ReasonOf(why);
  const bool ended = reason == "RESULT_CONFLICT" || reason == "RUN_FULL";
  if (!stream_.FailCompleting(attachment) || !ended) return;
  ended_ = true;
  if (!strand_.Post([self = shared_from_this()] { self->Close(); })) {
    Log(LogLevel::kWarning, "staged bytes stay until the next start", {{"upload", id_}});
  }
}

// Small ones go into the store with their row, others are published before it.
absl::Status UploadSession::StoreBytes(ResultRecord* result) {
  if (upload_.is_error) {
    ASSIGN_OR_RETURN(const auto text, Head(kMaxErrorText));
    result->error = ErrorReason(text);
  }
  if (result->size <= kInlineLimit) {
    ASSIGN_OR_RETURN(result->body, Head(kInlineLimit));
    return absl::OkStatus();
  }
  result->blob = ResultBlobName(key_.run, id_);
  if (published_) return absl::OkStatus();
  RETURN_IF_ERROR(StagedFailed(staged_->Publish(result->blob)));
  CloseStaged();
  published_ = result->size;
  return absl::OkStatus();
}

void UploadSession::Discard(const absl::Status& why) {
  stream_.Release(why);
  Close();
  if (!stream_.completing()) RemovePublished();
}

void UploadSession::RemovePublished() {
  const std::string blob = ResultBlobName(key_.run, id_);
  if (const absl::Status status = blobs_.Remove(blob); !status.ok()) {
    Log(LogLevel::kWarning, "cannot remove the blob of a discarded upload",
        {{"blob", blob}, {"error", status}});
  }
}

void UploadSession::Close() {
  ended_ = true;
  CloseStaged();
  if (const absl::Status status = blobs_.DiscardStaged(id_); !status.ok()) {
    Log(LogLevel::kWarning, "staged bytes are kept until the next start",
        {{"upload", id_}, {"error", status}});
  }
}

absl::StatusOr<int64_t> UploadSession::KeepPartial(const std::string& name) {
  stream_.Release(errors::RunSealed(key_.run));
  ended_ = true;
  if (staged_ == nullptr) {
    auto staged = blobs_.Resume(id_);
    // The bytes are published, and a result may name them: the upload may have been committed since
    // the caller listed it. So they are not removed here.
    if (absl::IsNotFound(staged.status())) return 0;
    if (!staged.ok()) return staged.status();
    staged_ = *std::move(staged);
  }
  const int64_t size = staged_->written();
  const absl::Status status = PublishPartial(*staged_, blobs_, name);
  CloseStaged();
  if (!status.ok()) return status;
  return size;
}

}  // namespace muster
