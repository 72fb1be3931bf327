#include "services/agent/jobs/record_log.h"

#include <array>
#include <span>
#include <utility>

#include "absl/time/clock.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/jobs.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr size_t kHeader = 8;
// 32 KiB of output and what is around it; a longer frame is none of ours.
constexpr size_t kMaxPayload = 40 * 1024;

void PutUint32(uint32_t value, char* out) {
  for (int i = 0; i < 4; ++i) out[i] = static_cast<char>(value >> (8 * i));
}

uint32_t GetUint32(const char* in) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= uint32_t{static_cast<unsigned char>(in[i])} << (8 * i);
  return value;
}

std::string Frame(const std::string& payload) {
  std::string frame(kHeader, '\0');
  PutUint32(static_cast<uint32_t>(payload.size()), frame.data());
  PutUint32(Crc32c(payload), frame.data() + 4);
  return frame + payload;
}

int64_t OutputOf(const v1::JobRecord& record) {
  return static_cast<int64_t>(record.output().data().size());
}

}  // namespace

NodeRecordLog::NodeRecordLog(std::unique_ptr<File> file, std::string job, std::string node)
    : file_(std::move(file)), job_(std::move(job)), node_(std::move(node)) {}

absl::StatusOr<std::unique_ptr<NodeRecordLog>> NodeRecordLog::Open(FileOps& ops,
                                                                   const std::string& path,
                                                                   std::string job,
                                                                   std::string node) {
  ASSIGN_OR_RETURN(auto file, ops.Open(path, OpenMode::kReadWriteOrCreate));
  std::unique_ptr<NodeRecordLog> log(
      new NodeRecordLog(std::move(file), std::move(job), std::move(node)));
  RETURN_IF_ERROR(log->Recover());
  return log;
}

absl::Status NodeRecordLog::Recover() {
  ASSIGN_OR_RETURN(const auto size, file_->Size());
  MutexLock lock(mutex_);
  size_ = size;
  int64_t good = 0;
  v1::JobRecord record;
  for (;;) {
    int64_t end = 0;
    ASSIGN_OR_RETURN(const auto found, ReadFrame(good, &record, &end));
    if (!found) break;
    ++sequence_;
    if (record.has_final()) final_sequence_ = sequence_;
    good = end;
  }
  if (good < size_) {
    RETURN_IF_ERROR(file_->Truncate(good));
    size_ = good;
  }
  return SyncLocked();
}

// False if no whole, undamaged frame lies there.
absl::StatusOr<bool> NodeRecordLog::ReadFrame(int64_t offset, v1::JobRecord* record, int64_t* end) {
  std::array<char, kHeader> header;
  ASSIGN_OR_RETURN(auto n, file_->ReadAt(header, offset));
  if (n < kHeader) return false;
  const uint32_t length = GetUint32(header.data());
  // Length 0: what a crash left as zeros, whose checksum holds.
  if (length == 0 || length > kMaxPayload) return false;
  std::string payload(length, '\0');
  ASSIGN_OR_RETURN(n,
                   file_->ReadAt(std::span<char>(payload), offset + static_cast<int64_t>(kHeader)));
  if (n < length || Crc32c(payload) != GetUint32(header.data() + 4)) return false;
  *end = offset + static_cast<int64_t>(kHeader + length);
  return record->ParseFromString(payload);
}

absl::Status NodeRecordLog::Append(v1::JobRecord record) {
  record.clear_job();
  record.clear_node();
  record.clear_sequence();
  if (!record.has_time()) ToProto(absl::Now(), record.mutable_time());
  const std::string frame = Frame(record.SerializeAsString());
  MutexLock lock(mutex_);
  if (absl::Status status = file_->WriteAt(frame, size_); !status.ok()) {
    file_->Truncate(size_).IgnoreError();  // or the next frame overwrites what is there
    return status;
  }
  size_ += static_cast<int64_t>(frame.size());
  ++sequence_;
  if (record.has_final()) final_sequence_ = sequence_;
  return absl::OkStatus();
}

absl::Status NodeRecordLog::Sync() {
  MutexLock lock(mutex_);
  return SyncLocked();
}

absl::Status NodeRecordLog::SyncLocked() {
  if (durable_ == size_) return absl::OkStatus();
  RETURN_IF_ERROR(file_->SyncData());
  durable_ = size_;
  return absl::OkStatus();
}

absl::StatusOr<bool> NodeRecordLog::Take(size_t max_bytes, v1::JobRecords* out) {
  MutexLock lock(mutex_);
  bool added = false;
  while (send_offset_ < size_ && sent_.size() < kMaxUnacknowledgedRecords) {
    v1::JobRecord record;
    int64_t end = 0;
    ASSIGN_OR_RETURN(const auto found, ReadFrame(send_offset_, &record, &end));
    if (!found) {
      return errors::JobLogDamaged(job_);
    }
    record.set_job(job_);
    record.set_node(node_);
    record.set_sequence(send_sequence_);
    const int64_t output = OutputOf(record);
    const bool fits_window = unacknowledged_output_ + output <= kMaxUnacknowledgedOutput;
    const size_t bytes = record.ByteSizeLong() + 8;
    if (!fits_window || out->ByteSizeLong() + bytes > max_bytes) break;
    // What the centre has seen must not be lost here, or a later record would take its sequence.
    if (end > durable_) {
      RETURN_IF_ERROR(SyncLocked());
    }
    *out->add_records() = std::move(record);
    sent_.push_back({send_sequence_++, output, end});
    unacknowledged_output_ += output;
    send_offset_ = end;
    added = true;
  }
  return added;
}

void NodeRecordLog::Acknowledge(int64_t sequence) {
  MutexLock lock(mutex_);
  while (!sent_.empty() && sent_.front().sequence <= sequence) {
    acknowledged_ = sent_.front().sequence;
    acknowledged_end_ = sent_.front().end;
    unacknowledged_output_ -= sent_.front().output;
    sent_.pop_front();
  }
}

void NodeRecordLog::Rewind() {
  MutexLock lock(mutex_);
  sent_.clear();
  unacknowledged_output_ = 0;
  send_offset_ = acknowledged_end_;
  send_sequence_ = acknowledged_ + 1;
}

bool NodeRecordLog::has_final() const {
  MutexLock lock(mutex_);
  return final_sequence_ != 0;
}

bool NodeRecordLog::final_acknowledged() const {
  MutexLock lock(mutex_);
  return final_sequence_ != 0 && acknowledged_ >= final_sequence_;
}

int64_t NodeRecordLog::size() const {
  MutexLock lock(mutex_);
  return size_;
}

}  // namespace muster
