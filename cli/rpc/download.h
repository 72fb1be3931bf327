// A download that is resumable and checked, and that gets its final name only when it is complete.
#ifndef MUSTER_CLI_RPC_DOWNLOAD_H_
#define MUSTER_CLI_RPC_DOWNLOAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/io.h"

namespace muster::cli {

struct Download {
  std::string path;       // of the complete file; the partial file is PATH.part
  int64_t size = 0;       // bytes
  std::string sha256;     // 32 bytes
  bool overwrite = true;  // replace a file PATH with other content
  // Returns the bytes from `offset` to the end.
  std::function<std::unique_ptr<ByteSource>(int64_t offset)> open;
  // Called with the number of bytes present, from the size of the partial file to `size`.
  std::function<void(int64_t done)> on_progress;
};

// Returns the partial file of `path`: "PATH.part".
std::string PartOf(const std::string& path);

// Opens and locks the partial file of `path`, which the caller renames to `path`. Returns
// INVALID_ARGUMENT (NOT_A_FILE) if one of them exists and is not a regular file, NOT_FOUND
// (FILE_NOT_FOUND) without their folder, or FAILED_PRECONDITION (FILE_LOCKED) if another program
// downloads to the same path.
absl::StatusOr<std::unique_ptr<File>> OpenPart(const std::string& path);

// Downloads the file. Resumes a partial download in PATH.part. If the complete file has a wrong
// size or digest, fetches it once more from the beginning. Replaces an existing PATH atomically, or
// keeps it if its content is the same. Returns ALREADY_EXISTS (FILE_EXISTS) if `overwrite` is false
// and PATH has other content, DATA_LOSS (DIGEST_MISMATCH, SIZE_MISMATCH),
// the errors of OpenPart, or the errors of the source. After DATA_LOSS the partial file is removed,
// after other errors it is kept.
absl::Status Fetch(const Download& download);

// Returns `output` if it names a file, `file_name` in it if it is a folder, or `file_name` in the
// current folder if it is empty.
std::string TargetPath(const std::string& output, const std::string& file_name);

// Returns ALREADY_EXISTS (FILE_EXISTS) if `path` has content, and it is not of this size and digest
// (32 bytes).
absl::Status CheckNoOtherFile(const std::string& path, int64_t size, const std::string& sha256);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_DOWNLOAD_H_
