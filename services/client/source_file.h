// A file that is being delivered: read by offset, and checked for changes.
#ifndef MUSTER_SERVICES_CLIENT_SOURCE_FILE_H_
#define MUSTER_SERVICES_CLIENT_SOURCE_FILE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/unique_fd.h"

namespace muster::client {

// An open regular file whose content must not change. Not thread-safe.
class SourceFile {
 public:
  // Fails with NOT_FOUND, PERMISSION_DENIED, or INVALID_ARGUMENT (NOT_A_FILE) for other kinds of
  // files. Waits up to 50 ms if the file was just written, so that a later write changes its times.
  static absl::StatusOr<std::unique_ptr<SourceFile>> Open(const std::string& path);

  // Does the same for a path without symbolic links, and fails with NOT_A_FILE if it has one now
  // (open_resolved.h).
  static absl::StatusOr<std::unique_ptr<SourceFile>> OpenResolved(const std::string& path);

  // Adopts an unnamed file, which no other program can write.
  static absl::StatusOr<std::unique_ptr<SourceFile>> Adopt(UniqueFd fd, std::string name);

  // Makes an unnamed file in memory.
  static absl::StatusOr<std::unique_ptr<SourceFile>> FromText(std::string_view text,
                                                              std::string name);

  // Fills `buffer` from `offset`; the range must be within size(). Fails with ABORTED:
  // SOURCE_CHANGED if the file has changed since it was opened, SOURCE_UNREADABLE if its disk
  // fails.
  absl::Status ReadAt(int64_t offset, std::span<char> buffer);

  // Fails with ABORTED (SOURCE_CHANGED) if the file was written since it was opened.
  absl::Status CheckUnchanged() const;

  int64_t size() const { return size_; }
  const std::string& path() const { return path_; }

  // Equal for the same file with the same modification time, to find out after a restart whether
  // the file is unchanged.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  SourceFile(UniqueFd fd, std::string path, int64_t size, std::string fingerprint);

  static absl::StatusOr<std::unique_ptr<SourceFile>> Settle(UniqueFd fd, const std::string& path);

  const UniqueFd fd_;
  const std::string path_;
  const int64_t size_;
  const std::string fingerprint_;
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_SOURCE_FILE_H_
