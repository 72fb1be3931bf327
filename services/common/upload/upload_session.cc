#include "services/common/upload/upload_session.h"

#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/base/zstd_frame.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/upload/blob_names.h"

namespace muster {
namespace {

// Tasks that wait on one session: the pipeline of one stream, and take-overs.
constexpr size_t kMaxStrandQueue = 64;

// What a stream has to bring to count as alive.
constexpr int64_t kProgressBytes = 64 * 1024;

constexpr size_t kReadBuffer = 256 * 1024;

// Feeds everything of `source` to `sink`.
absl::Status ForEachPiece(ByteSource& source, const std::function<void(std::string_view)>& sink) {
  std::vector<char> buffer(kReadBuffer);
  for (;;) {
    ASSIGN_OR_RETURN(const auto n, source.Read(buffer));
    if (n == 0) return absl::OkStatus();
    sink({buffer.data(), n});
  }
}

// The next `limit` bytes of `source`, or what there is until its end.
absl::StatusOr<std::string> ReadUpTo(ByteSource& source, size_t limit) {
  std::string bytes(limit, '\0');
  size_t filled = 0;
  while (filled < limit) {
    ASSIGN_OR_RETURN(const auto n, source.Read(std::span(bytes).subspan(filled)));
    if (n == 0) break;
    filled += n;
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace

UploadSession::UploadSession(UploadRecord upload, BlobStore& blobs, ResultSink& sink,
                             Executor& executor, const Clock& clock)
    : id_(upload.id),
      key_(upload.key),
      blobs_(blobs),
      sink_(sink),
      clock_(clock),
      strand_(executor, kMaxStrandQueue),
      upload_(std::move(upload)) {}

absl::StatusOr<int64_t> UploadSession::Reopen(const UploadRecord& upload, const UploadPeer& opener,
                                              std::optional<absl::Time> signed_at) {
  if (ended_) return errors::UploadNotFound(id_);
  if (upload.epoch < upload_.epoch) return errors::TakenOver(id_);
  Release(errors::TakenOver(id_));
  upload_ = upload;
  opener_ = opener;
  signed_at_ = signed_at;
  {
    MutexLock lock(stream_mutex_);
    completing_ = {};
  }
  RETURN_IF_ERROR(OpenStaged());
  return published_ ? *published_ : staged_->written();
}

// The staged bytes of an earlier stream or process; or, after a crash between publishing and
// committing, the published blob; or a new file.
absl::Status UploadSession::OpenStaged() {
  if (staged_ != nullptr || published_) return absl::OkStatus();
  auto staged = blobs_.Resume(id_);
  if (absl::IsNotFound(staged.status())) {
    if (auto size = blobs_.Size(ResultBlobName(key_.run, id_)); size.ok()) {
      published_ = *size;
      return absl::OkStatus();
    }
    staged = blobs_.Stage(id_, upload_.size);
  }
  if (!staged.ok()) return staged.status();
  staged_ = *std::move(staged);
  return absl::OkStatus();
}

absl::Status UploadSession::CheckAttached(const UploadAttachment& attachment) const {
  if (ended_) return errors::UploadNotFound(id_);
  MutexLock lock(stream_mutex_);
  return attached_ && attachment == current_ ? absl::OkStatus() : errors::TakenOver(id_);
}

bool UploadSession::completing() const {
  MutexLock lock(stream_mutex_);
  return completing_ != UploadAttachment();
}

absl::StatusOr<UploadAttachment> UploadSession::Attach(
    int64_t epoch, const UploadPeer& peer, std::function<void(absl::Status)> on_detached) {
  if (ended_ || opener_ != peer) return errors::UploadNotFound(id_);
  if (epoch != upload_.epoch) return errors::TakenOver(id_);
  if (completing()) return errors::UploadCompleting(id_);
  RETURN_IF_ERROR(OpenStaged());
  Release(errors::TakenOver(id_));
  since_progress_ = 0;
  MutexLock lock(stream_mutex_);
  current_ = UploadAttachment(++attachments_);
  attached_ = true;
  on_detached_ = std::move(on_detached);
  progress_at_ = clock_.MonotonicNow();
  return current_;
}

void UploadSession::Detach(const UploadAttachment& attachment) {
  {
    MutexLock lock(stream_mutex_);
    if (attachment == UploadAttachment() || attachment != current_) return;
    current_ = {};
    attached_ = false;
    on_detached_ = nullptr;
  }
  // Open files are for streams; the hash would be of no use without them.
  staged_.reset();
  sha256_ = Sha256();
  hashed_ = 0;
}

// Ends the attached stream, whose files stay open for the next one.
void UploadSession::Release(const absl::Status& why) {
  std::function<void(absl::Status)> on_detached;
  {
    MutexLock lock(stream_mutex_);
    current_ = {};
    attached_ = false;
    on_detached = std::exchange(on_detached_, nullptr);
  }
  if (on_detached) on_detached(why);
}

void UploadSession::EndStalledStream(absl::Duration limit) {
  std::function<void(absl::Status)> on_detached;
  {
    MutexLock lock(stream_mutex_);
    if (StalledForLocked() <= limit) return;
    attached_ = false;
    on_detached = std::exchange(on_detached_, nullptr);
  }
  if (on_detached) on_detached(errors::UploadStalled());
}

absl::Duration UploadSession::StalledForLocked() const {
  return attached_ ? clock_.MonotonicNow() - progress_at_ : absl::ZeroDuration();
}

absl::Duration UploadSession::StalledFor() const {
  MutexLock lock(stream_mutex_);
  return StalledForLocked();
}

bool UploadSession::attached() const {
  MutexLock lock(stream_mutex_);
  return attached_;
}

void UploadSession::NoteProgress(int64_t bytes) {
  since_progress_ += bytes;
  if (since_progress_ < kProgressBytes) return;
  since_progress_ = 0;
  MutexLock lock(stream_mutex_);
  progress_at_ = clock_.MonotonicNow();
}

absl::StatusOr<std::string> UploadSession::RawBytes(UploadChunk chunk) const {
  if (!chunk.zstd) {
    if (static_cast<int64_t>(chunk.data.size()) != chunk.raw_size) {
      return errors::InvalidChunk(
          absl::StrCat("it announces ", chunk.raw_size, " bytes and contains ", chunk.data.size()));
    }
    return std::move(chunk.data);
  }
  std::string raw;
  const absl::Status unpacked =
      DecompressFrame(chunk.data, static_cast<size_t>(chunk.raw_size), &raw);
  if (!unpacked.ok()) return errors::InvalidChunk(ToStd(unpacked.message()));
  if (static_cast<int64_t>(raw.size()) != chunk.raw_size) {
    return errors::InvalidChunk("its frame contains fewer bytes than announced");
  }
  return raw;
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
  if (completing()) return errors::InvalidChunk("it follows the finish");
  const int64_t written = published_ ? *published_ : staged_->written();
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
  if (hashed_ != written) {
    RETURN_IF_ERROR(HashAgain());
  }
  RETURN_IF_ERROR(staged_->Append(raw, crc));
  sha256_.Update(raw);
  hashed_ += static_cast<int64_t>(raw.size());
  return UploadAck{staged_->written(), staged_->durable()};
}

absl::Status UploadSession::HashAgain() {
  sha256_ = Sha256();
  hashed_ = 0;
  ASSIGN_OR_RETURN(auto source,
                   published_ ? blobs_.Open(ResultBlobName(key_.run, id_), 0) : staged_->Read(0));
  return ForEachPiece(*source, [this](std::string_view piece) {
    sha256_.Update(piece);
    hashed_ += static_cast<int64_t>(piece.size());
  });
}

absl::Status UploadSession::VerifyWhole(const UploadFinish& finish, int64_t size,
                                        const std::string& sha256) const {
  if (finish.size != size) return errors::SizeMismatch(finish.size, size);
  if (upload_.size >= 0 && upload_.size != size) return errors::SizeMismatch(upload_.size, size);
  if (staged_ != nullptr && staged_->crc32c() != finish.crc32c) {
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
  if (completing()) return committed(errors::UploadCompleting(id_));
  const int64_t written = published_ ? *published_ : staged_->written();
  if (hashed_ != written || written == 0) {
    if (const absl::Status status = HashAgain(); !status.ok()) return committed(status);
  }
  const std::string sha256 = DigestBytes(sha256_.Finish());
  const int64_t size = std::exchange(hashed_, 0);  // the digest begins anew
  if (const absl::Status status = VerifyWhole(finish, size, sha256); !status.ok()) {
    // What arrived is not what was meant: nothing of it can be gone on with.
    if (ReasonOf(status) != "SIZE_MISMATCH") Close();
    return committed(status);
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
  result.crc32c = finish.crc32c;
  result.sha256 = sha256;
  result.media_type = upload_.media_type;
  result.file_name = upload_.file_name;
  result.delivery = upload_.delivery;
  result.delivery.signature = finish.signature;
  result.delivery.signer_pem = finish.signer_chain_pem;
  // Before the bytes are published: after a refusal the upload goes on as it was.
  if (const absl::Status status = sink_.CheckSignature(verified); !status.ok()) {
    return committed(status);
  }
  if (const absl::Status status = StoreBytes(&result); !status.ok()) return committed(status);
  {
    MutexLock lock(stream_mutex_);
    completing_ = attachment;
  }
  sink_.Commit(std::move(verified),
               [self = shared_from_this(), attachment,
                committed = std::move(committed)](absl::StatusOr<ResultRecord> result) mutable {
                 if (!result.ok()) self->CompletionFailed(attachment);
                 committed(std::move(result));
               });
}

// The upload may be completed again, unless a later open has changed that already.
void UploadSession::CompletionFailed(const UploadAttachment& attachment) {
  MutexLock lock(stream_mutex_);
  if (completing_ == attachment) completing_ = {};
}

// Small ones go into the store with their row, others are published before it.
absl::Status UploadSession::StoreBytes(ResultRecord* result) {
  if (upload_.is_error) {
    ASSIGN_OR_RETURN(const auto text, Head(kMaxErrorText));
    result->error = CutUtf8(CleanUtf8(text), kMaxErrorText);
  }
  if (result->size <= kInlineLimit) {
    ASSIGN_OR_RETURN(result->body, Head(kInlineLimit));
    return absl::OkStatus();
  }
  result->blob = ResultBlobName(key_.run, id_);
  if (published_) return absl::OkStatus();
  RETURN_IF_ERROR(staged_->Publish(result->blob));
  staged_.reset();
  published_ = result->size;
  return absl::OkStatus();
}

void UploadSession::Discard(const absl::Status& why) {
  Release(why);
  Close();
}

void UploadSession::Close() {
  ended_ = true;
  staged_.reset();
  if (const absl::Status status = blobs_.DiscardStaged(id_); !status.ok()) {
    Log(LogLevel::kWarning, "staged bytes are kept until the next start",
        {{"upload", id_}, {"error", status}});
  }
}

absl::StatusOr<int64_t> UploadSession::KeepPartial(const std::string& name) {
  Release(errors::RunSealed(key_.run));
  ended_ = true;
  if (staged_ == nullptr) {
    auto staged = blobs_.Resume(id_);
    if (absl::IsNotFound(staged.status())) return 0;
    if (!staged.ok()) return staged.status();
    staged_ = *std::move(staged);
  }
  const int64_t size = staged_->written();
  const absl::Status status = size == 0 ? staged_->Discard() : staged_->Publish(name);
  staged_.reset();
  if (!status.ok()) return status;
  return size;
}

}  // namespace muster
