#include "services/common/archive/file_spool.h"

#include "services/common/base/status_macros.h"

namespace muster {

absl::Status FileSpool::Write(std::string_view data) {
  constexpr size_t kPiece = 256 * 1024;
  pending_.append(data);
  return pending_.size() < kPiece ? absl::OkStatus() : Flush();
}

absl::Status FileSpool::Flush() {
  RETURN_IF_ERROR(file_->WriteAt(pending_, written_));
  written_ += static_cast<int64_t>(pending_.size());
  pending_.clear();
  return absl::OkStatus();
}

absl::StatusOr<size_t> FileSpool::Read(std::span<char> buffer) {
  absl::StatusOr<size_t> got = file_->ReadAt(buffer, read_);
  if (got.ok()) read_ += static_cast<int64_t>(*got);
  return got;
}

}  // namespace muster
