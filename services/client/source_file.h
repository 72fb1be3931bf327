// A file on its way out: read by offset, and watched for changes.
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

// An open regular file whose content must stay as it is. Not thread-safe.
class SourceFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED, or INVALID_ARGUMENT (NOT_A_FILE) for anything but a regular file.
  // Waits up to 50 ms if the file was written just now, so that a later write shows in its times.
  static absl::StatusOr<std::unique_ptr<SourceFile>> Open(const std::string& path);

  // Takes a file that has no name any more; nobody else writes to it.
  static absl::StatusOr<std::unique_ptr<SourceFile>> Adopt(UniqueFd fd, std::string name);

  // Fills all of `buffer` from `offset`, which together stay within size(). ABORTED
  // (SOURCE_CHANGED) if the file is not what it was when it was opened, ABORTED (SOURCE_UNREADABLE)
  // if its disk fails.
  absl::Status ReadAt(int64_t offset, std::span<char> buffer);

  // ABORTED (SOURCE_CHANGED) if the file was written since it was opened.
  absl::Status CheckUnchanged() const;

  int64_t size() const { return size_; }
  const std::string& path() const { return path_; }

  // Equal for the same file with the same content times; for finding out after a restart whether
  // this is still what was being sent.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  SourceFile(UniqueFd fd, std::string path, int64_t size, std::string fingerprint);

  const UniqueFd fd_;
  const std::string path_;
  const int64_t size_;
  const std::string fingerprint_;
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_SOURCE_FILE_H_
