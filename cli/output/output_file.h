// The check of the files that options such as --output name.
#ifndef MUSTER_CLI_OUTPUT_OUTPUT_FILE_H_
#define MUSTER_CLI_OUTPUT_OUTPUT_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace muster::cli {

// Returns an error unless `path` is a regular file or does not exist. An output is written to
// another file, checked, and renamed to `path`, which would replace a device, such as /dev/null, or
// a link. Returns INVALID_ARGUMENT (NOT_A_FILE) for a symbolic link, device, pipe, socket or
// folder, and for "-": only some commands write to standard output.
absl::Status CheckOutputFile(const std::string& path);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_OUTPUT_FILE_H_
