#include "services/relay/jobs/record_log.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "services/common/base/crc32c.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/jobs.h"

namespace muster {
namespace {

constexpr size_t kHeader = 8;
// A record holds at most 32 KiB of output and some names; more is no record of ours.
constexpr uint32_t kMaxRecord = 64 * 1024;
constexpr int64_t kReadAtOnce = 1 << 20;

uint32_t Load(const char* bytes) {
  uint32_t value = 0;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// The record at the beginning of `bytes` and its size with the header; 0: there is no whole one.
int64_t Parse(std::string_view bytes, v1::JobRecord* record) {
  if (bytes.size() < kHeader) return 0;
  const uint32_t length = Load(bytes.data());
  // Length 0: what a crash left as zeros, whose checksum holds.
  if (length == 0 || length > kMaxRecord || bytes.size() < kHeader + length) return 0;
  const std::string_view body = bytes.substr(kHeader, length);
  if (Crc32c(body) != Load(bytes.data() + 4)) return 0;
  if (!record->ParseFromArray(body.data(), static_cast<int>(body.size()))) return 0;
  return static_cast<int64_t>(kHeader + length);
}

}  // namespace

absl::StatusOr<RecordsRead> ReadRecords(File& file, int64_t position, int64_t end,
                                        int64_t max_bytes) {
  RecordsRead read;
  read.position = position;
  const auto most = max_bytes + static_cast<int64_t>(kMaxRecord + kHeader);
  std::string buffer(static_cast<size_t>(std::min(end - position, most)), '\0');
  ASSIGN_OR_RETURN(const auto got,
                   file.ReadAt(std::span<char>(buffer.data(), buffer.size()), position));
  std::string_view rest(buffer.data(), got);
  while (read.position < end && read.position - position < max_bytes) {
    v1::JobRecord record;
    const int64_t size = Parse(rest, &record);
    if (size == 0) {
      if (read.records.empty()) return errors::InvalidPosition(position);
      break;
    }
    read.records.push_back(std::move(record));
    read.position += size;
    rest.remove_prefix(static_cast<size_t>(size));
  }
  return read;
}

absl::StatusOr<std::unique_ptr<RecordLog>> RecordLog::Open(
    FileOps& files, const std::string& path,
    const std::function<void(const v1::JobRecord&)>& each) {
  ASSIGN_OR_RETURN(auto file, files.Open(path, OpenMode::kReadWriteOrCreate));
  ASSIGN_OR_RETURN(const auto size, file->Size());
  if (size == 0) {  // it may be new: what is stored in it needs its name
    RETURN_IF_ERROR(files.SyncFolder(ParentFolder(path)));
  }
  std::unique_ptr<RecordLog> log(new RecordLog(std::move(file)));
  while (log->end_ < size) {
    const auto read = ReadRecords(*log->file_, log->end_, size, kReadAtOnce);
    if (absl::IsOutOfRange(read.status())) break;
    if (!read.ok()) return read.status();
    if (each) {
      for (const v1::JobRecord& record : read->records) each(record);
    }
    log->end_ = read->position;
  }
  if (log->end_ < size) {
    RETURN_IF_ERROR(log->file_->Truncate(log->end_));
  }
  return log;
}

absl::Status RecordLog::Append(const v1::JobRecord& record) {
  std::string body = record.SerializeAsString();
  const std::array<uint32_t, 2> header = {static_cast<uint32_t>(body.size()), Crc32c(body)};
  std::string bytes(reinterpret_cast<const char*>(header.data()), sizeof(header));
  bytes += body;
  if (absl::Status s = file_->WriteAt(bytes, end_); !s.ok()) {
    file_->Truncate(end_).IgnoreError();  // a later opening drops the rest as well
    return s;
  }
  end_ += static_cast<int64_t>(bytes.size());
  dirty_ = true;
  return absl::OkStatus();
}

absl::Status RecordLog::Sync() {
  if (!dirty_) return absl::OkStatus();
  RETURN_IF_ERROR(file_->SyncData());
  dirty_ = false;
  return absl::OkStatus();
}

}  // namespace muster
