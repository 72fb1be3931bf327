// A file that arrives: resumed where it broke, checked, and in its place only when it is whole.
#ifndef MUSTER_CLI_RPC_DOWNLOAD_H_
#define MUSTER_CLI_RPC_DOWNLOAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "services/common/base/io.h"

namespace muster::cli {

struct Download {
  std::string path;    // where it goes; PATH.part until it is whole
  int64_t size = 0;    // bytes
  std::string sha256;  // 32 bytes
  // The bytes from an offset on.
  std::function<std::unique_ptr<ByteSource>(int64_t offset)> open;
  // Told how many bytes are there, from where an earlier try had stopped to `size`.
  std::function<void(int64_t done)> on_progress;
};

// Does it. What an earlier try left in PATH.part is checked with the rest; if the whole is not what
// it should be, it is fetched once more from the beginning. An existing PATH is replaced at once,
// or kept if it has that content already. DATA_LOSS (DIGEST_MISMATCH, SIZE_MISMATCH);
// FAILED_PRECONDITION (FILE_LOCKED) if another program downloads to the same path; errors of the
// source as they are: the partial file stays for the next try.
absl::Status Fetch(const Download& download);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_DOWNLOAD_H_
