// Small files that matter: keys, certificates, tokens, state.
#ifndef MUSTER_SERVICES_COMMON_BASE_SECRET_FILE_H_
#define MUSTER_SERVICES_COMMON_BASE_SECRET_FILE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

inline constexpr size_t kMaxSecretFile = size_t{1} << 20;

// Replaces the file at `path` atomically, also across a power failure: a reader sees either the
// whole old content or the whole new content. The file gets `mode` (0600 unless the content is
// public). Its folder must exist. A symbolic link at `path` is replaced, not followed.
absl::Status WriteFileAtomically(const std::string& path, std::string_view content,
                                 unsigned mode = 0600);

// Returns an error unless the content is of the expected kind, such as a join token.
using CheckSecret = std::function<absl::Status(std::string_view)>;

// Reads a secret of at most 1 MiB. FAILED_PRECONDITION (SECRET_FILE_EXPOSED) if group or others may
// touch it, if it belongs to another user (root excepted), or if `path` is a symbolic link or no
// plain file: another user may have read or replaced such a secret. If `check` rejects the content
// of such a file, returns the error of `check` instead: the file is not the secret, and its owner
// and mode must not be changed.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path, const CheckSecret& check = {});

// Reads a plain file whole. RESOURCE_EXHAUSTED (FILE_TOO_LARGE) if it holds more than `max_bytes`;
// INVALID_ARGUMENT (NOT_A_FILE) for a folder, pipe or device. Follows symbolic links.
absl::StatusOr<std::string> ReadFileBounded(const std::string& path, size_t max_bytes);

// Reads standard input to its end. FILE_TOO_LARGE as above.
absl::StatusOr<std::string> ReadStdinBounded(size_t max_bytes);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_SECRET_FILE_H_
