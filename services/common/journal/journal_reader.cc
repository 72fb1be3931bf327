#include "services/common/journal/journal_reader.h"

#include <algorithm>
#include <span>
#include <utility>

#include "services/common/base/crc32c.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/journal.h"

namespace muster {
namespace {

constexpr size_t kReadAhead = size_t{64} << 10;

}  // namespace

absl::Status JournalDamaged(const std::string& path, int64_t position) {
  return errors::JournalDamaged(path, position);
}

absl::StatusOr<JournalHeader> ReadJournalHeader(File& file, const std::string& path) {
  std::string bytes(kJournalHeaderSize, '\0');
  ASSIGN_OR_RETURN(const auto got, file.ReadAt(std::span<char>(bytes), 0));
  if (got == bytes.size()) {
    if (const auto header = DecodeJournalHeader(bytes)) return *header;
  }
  ASSIGN_OR_RETURN(const auto size, file.Size());
  // Nothing is appended before the header is durable.
  if (size > static_cast<int64_t>(kJournalHeaderSize)) return JournalDamaged(path, 0);
  return errors::JournalUnfinished(path);
}

absl::StatusOr<std::unique_ptr<JournalReader>> JournalReader::Open(FileOps& ops,
                                                                   const std::string& path) {
  ASSIGN_OR_RETURN(auto file, ops.Open(path, OpenMode::kRead));
  ASSIGN_OR_RETURN(const auto header, ReadJournalHeader(*file, path));
  return std::make_unique<JournalReader>(std::move(file), path, header,
                                         static_cast<int64_t>(kJournalHeaderSize));
}

JournalReader::JournalReader(std::shared_ptr<File> file, std::string path,
                             const JournalHeader& header, int64_t position)
    : file_(std::move(file)), path_(std::move(path)), header_(header), position_(position) {}

absl::StatusOr<std::string_view> JournalReader::Fill(size_t size, int64_t end) {
  const size_t available = static_cast<size_t>(std::max<int64_t>(0, end - position_));
  const size_t wanted = std::min(size, available);
  const bool inside =
      position_ >= buffer_at_ && position_ <= buffer_at_ + static_cast<int64_t>(buffer_.size());
  const size_t skip = inside ? static_cast<size_t>(position_ - buffer_at_) : buffer_.size();
  if (buffer_.size() - skip < wanted) {
    buffer_.resize(std::min(std::max(size, kReadAhead), available));
    buffer_at_ = position_;
    const auto got = file_->ReadAt(std::span<char>(buffer_), position_);
    buffer_.resize(got.ok() ? *got : 0);
    if (!got.ok()) return got.status();
    return std::string_view(buffer_);
  }
  return std::string_view(buffer_).substr(skip);
}

absl::Status JournalReader::Seek(int64_t position, int64_t end) {
  position_ = std::max(position, int64_t{0});
  if (position_ == 0) position_ = static_cast<int64_t>(kJournalHeaderSize);
  if (position_ == end) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto bytes, Fill(kFrameHeaderSize, end));
  if (position >= 0 && DecodeFrameHeader(header_, position_, bytes)) return absl::OkStatus();
  return errors::JournalPosition(position);
}

absl::StatusOr<bool> JournalReader::Next(int64_t end, std::string_view* record) {
  if (position_ >= end) {
    std::string().swap(buffer_);
    return false;
  }
  ASSIGN_OR_RETURN(auto bytes, Fill(kFrameHeaderSize, end));
  const auto header = DecodeFrameHeader(header_, position_, bytes);
  if (!header) return JournalDamaged(path_, position_);
  if (header->length == 0) {
    synced_ = position_;
    // The next record overwrites the mark. Bytes after a mark are those of a record that is torn or
    // lost.
    if (position_ + static_cast<int64_t>(kFrameHeaderSize) < end) {
      return JournalDamaged(path_, position_);
    }
    return false;
  }
  const size_t size = kFrameHeaderSize + header->length;
  ASSIGN_OR_RETURN(bytes, Fill(size, end));
  if (bytes.size() < size) return JournalDamaged(path_, position_);
  *record = bytes.substr(kFrameHeaderSize, header->length);
  if (Crc32c(*record) != header->payload_crc) return JournalDamaged(path_, position_);
  synced_ = position_ - header->unsynced;
  position_ += static_cast<int64_t>(size);
  return true;
}

}  // namespace muster
