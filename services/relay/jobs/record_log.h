// The file with the records of one job: only ever appended to, and read from any record on.
//
// A record is its length (4 bytes), the CRC32C of what follows (4 bytes), and a serialised
// JobRecord. Positions are offsets in the file. What a crash cut off at the end is dropped when the
// file is opened; nothing that was synced is.
#ifndef MUSTER_SERVICES_RELAY_JOBS_RECORD_LOG_H_
#define MUSTER_SERVICES_RELAY_JOBS_RECORD_LOG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/file_ops.h"

namespace muster {

// Not thread-safe; reading by another RecordLog of the same file is fine up to a synced position.
class RecordLog {
 public:
  // Opens or makes the file, and gives every whole record in it to `each` (may be empty).
  static absl::StatusOr<std::unique_ptr<RecordLog>> Open(
      FileOps& files, const std::string& path,
      const std::function<void(const v1::JobRecord&)>& each);

  // Writes one record at the end. After a failure the file is as before.
  absl::Status Append(const v1::JobRecord& record);

  // Makes what was appended survive the loss of power.
  absl::Status Sync();

  // The position after the last record.
  int64_t end() const { return end_; }

 private:
  explicit RecordLog(std::unique_ptr<File> file) : file_(std::move(file)) {}

  std::unique_ptr<File> file_;
  int64_t end_ = 0;
  bool dirty_ = false;
};

struct RecordsRead {
  std::vector<v1::JobRecord> records;
  int64_t position = 0;  // after them
};

// Records from `position` to at most `end`, until they are `max_bytes` or more. OUT_OF_RANGE
// (INVALID_POSITION) if no record begins there.
absl::StatusOr<RecordsRead> ReadRecords(File& file, int64_t position, int64_t end,
                                        int64_t max_bytes);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_RECORD_LOG_H_
