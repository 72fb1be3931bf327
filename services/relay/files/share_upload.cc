#include "services/relay/files/share_upload.h"

#include <vector>

#include "services/common/base/crc32c.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"

namespace muster {
namespace {

constexpr size_t kPiece = size_t{256} << 10;

}  // namespace

ShareUpload::~ShareUpload() {
  if (!dropped_) return;
  blob_.reset();
  absl::Status removed = blobs_.DiscardStaged(id());
  if (removed.ok()) removed = blobs_.Remove(Blob());
  if (!removed.ok()) {
    Log(LogLevel::kError, "what arrived of a shared file cannot be removed", {{"error", removed}});
  }
}

absl::Status ShareUpload::CheckOwner(int64_t epoch) const {
  return epoch == epoch_ && !dropped_ ? absl::OkStatus() : errors::TakenOver(id());
}

absl::StatusOr<int64_t> ShareUpload::Ready() {
  MutexLock lock(mutex_);
  if (published_) return size();
  if (blob_ != nullptr) return blob_->written();
  auto resumed = blobs_.Resume(id());
  if (resumed.ok()) {
    blob_ = *std::move(resumed);
    RETURN_IF_ERROR(Rehash());
    return blob_->written();
  }
  if (!absl::IsNotFound(resumed.status())) return resumed.status();
  // A crash may have come right after its name was given.
  if (const auto there = blobs_.Size(Blob()); there.ok()) {
    published_ = true;
    return size();
  }
  ASSIGN_OR_RETURN(blob_, blobs_.Stage(id(), size()));
  return 0;
}

absl::Status ShareUpload::Rehash() {
  hash_ = Sha256();
  ASSIGN_OR_RETURN(auto source, blob_->Read(0));
  std::vector<char> piece(kPiece);
  while (true) {
    ASSIGN_OR_RETURN(const auto n, source->Read(piece));
    if (n == 0) return absl::OkStatus();
    hash_.Update({piece.data(), n});
  }
}

absl::Status ShareUpload::Append(int64_t epoch, int64_t offset, std::string_view data,
                                 uint32_t crc32c) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckOwner(epoch));
  if (blob_ == nullptr) return errors::UploadNotFound(id());
  const int64_t written = blob_->written();
  if (data.empty() || offset < 0) return errors::InvalidChunk("it is empty, or begins before 0");
  if (offset > written) return errors::OffsetTooHigh(offset, written);
  const auto length = static_cast<int64_t>(data.size());
  if (offset + length > size()) return errors::SizeMismatch(size(), offset + length);
  if (offset < written) {
    return errors::InvalidChunk("it repeats bytes that were taken: go on where the answer said");
  }
  if (Crc32c(data) != crc32c) return errors::CrcMismatch("chunk");
  RETURN_IF_ERROR(blob_->Append(data, crc32c));
  hash_.Update(data);
  ++chunks_;
  return absl::OkStatus();
}

absl::Status ShareUpload::Publish(int64_t epoch) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckOwner(epoch));
  if (published_) return absl::OkStatus();
  if (blob_ == nullptr) return errors::UploadNotFound(id());
  if (blob_->written() != size()) return errors::SizeMismatch(size(), blob_->written());
  if (DigestBytes(hash_.Finish()) != sha256_) {
    return errors::DigestMismatch();
  }
  RETURN_IF_ERROR(blob_->Publish(Blob()));
  blob_.reset();
  published_ = true;
  return absl::OkStatus();
}

}  // namespace muster
