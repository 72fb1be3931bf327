// What happened to one job on this node, on disk until the centre has stored it.
#ifndef MUSTER_SERVICES_AGENT_JOBS_RECORD_LOG_H_
#define MUSTER_SERVICES_AGENT_JOBS_RECORD_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/mutex.h"

namespace muster {

// Of output on its way without an acknowledgement: 64 KiB, and so many records.
inline constexpr int64_t kMaxUnacknowledgedOutput = int64_t{64} << 10;
inline constexpr size_t kMaxUnacknowledgedRecords = 256;

// An append-only file of job records. A frame is the payload's length and the CRC32C of the
// payload (4 bytes each, little endian), then the JobRecord without job and node, whose sequence is
// its place in the file. Thread-safe: one thread appends while another sends.
class NodeRecordLog {
 public:
  // Opens or makes the file. What a crash left unfinished at its end is cut off.
  static absl::StatusOr<std::unique_ptr<NodeRecordLog>> Open(FileOps& ops, const std::string& path,
                                                             std::string job, std::string node);

  // Gives the record its sequence, and its time if it has none. Not durable before Take handed it
  // out or Sync returned. After a failure (a full disk) the log is as before, and works on.
  absl::Status Append(v1::JobRecord record);
  absl::Status Sync();

  // Adds the next records that may be sent to `out`, durable, as long as `out` holds at most
  // `max_bytes`. True if it added any.
  absl::StatusOr<bool> Take(size_t max_bytes, v1::JobRecords* out);

  // The centre has all up to this sequence.
  void Acknowledge(int64_t sequence);

  // What was sent and not acknowledged may be lost: it is sent again.
  void Rewind();

  bool has_final() const;
  // Nothing is left to be told.
  bool final_acknowledged() const;
  int64_t size() const;  // bytes of the file

 private:
  struct Sent {
    int64_t sequence;
    int64_t output;  // bytes
    int64_t end;     // in the file
  };

  NodeRecordLog(std::unique_ptr<File> file, std::string job, std::string node);
  absl::Status Recover();
  absl::StatusOr<bool> ReadFrame(int64_t offset, v1::JobRecord* record, int64_t* end);
  absl::Status SyncLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<File> file_;
  const std::string job_;
  const std::string node_;
  mutable Mutex mutex_;
  int64_t size_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t durable_ ABSL_GUARDED_BY(mutex_) = 0;         // bytes that are synced
  int64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;        // of the last record
  int64_t final_sequence_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: there is none
  int64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;    // sequence
  int64_t acknowledged_end_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t send_offset_ ABSL_GUARDED_BY(mutex_) = 0;  // of the next record to send
  int64_t send_sequence_ ABSL_GUARDED_BY(mutex_) = 1;
  int64_t unacknowledged_output_ ABSL_GUARDED_BY(mutex_) = 0;
  // Not acknowledged, at most kMaxUnacknowledgedRecords.
  std::deque<Sent> sent_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_RECORD_LOG_H_
