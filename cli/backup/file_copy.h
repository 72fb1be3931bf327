// Copies files, and computes their digests.
#ifndef MUSTER_CLI_BACKUP_FILE_COPY_H_
#define MUSTER_CLI_BACKUP_FILE_COPY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::cli {

struct FileDigest {
  int64_t size = 0;
  std::string sha256;  // lower-case hexadecimal
};

// Copies a file to a new one (0600), and creates its folder. SyncFileSystem makes the copy durable.
// NOT_FOUND if `from` does not exist.
absl::StatusOr<FileDigest> CopyFile(const std::string& from, const std::string& to);

absl::StatusOr<FileDigest> DigestFile(const std::string& path);

// Returns true if a folder has no entries, or does not exist.
absl::StatusOr<bool> IsEmptyFolder(const std::string& path);

// Makes all files on the file system of `folder` durable.
absl::Status SyncFileSystem(const std::string& folder);

}  // namespace muster::cli

#endif  // MUSTER_CLI_BACKUP_FILE_COPY_H_
