// A temporary file for bytes that are written once and read again.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_FILE_SPOOL_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_FILE_SPOOL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/io.h"

namespace muster {

// A file that is written first and then read. It is never synced, because it need not survive a
// crash. Not thread-safe.
class FileSpool : public ByteSink, public ByteSource {
 public:
  // `file` is empty and open for reading and writing.
  explicit FileSpool(std::unique_ptr<File> file) : file_(std::move(file)) {}

  absl::Status Write(std::string_view data) override;
  // The number of written bytes, including buffered ones.
  int64_t size() const { return written_ + static_cast<int64_t>(pending_.size()); }

  // Reads from the first byte on; call Flush first.
  absl::StatusOr<size_t> Read(std::span<char> buffer) override;
  absl::Status Flush();

 private:
  std::unique_ptr<File> file_;
  std::string pending_;
  int64_t written_ = 0;
  int64_t read_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_FILE_SPOOL_H_
