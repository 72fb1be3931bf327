// Files that an argument names.
#ifndef MUSTER_CLI_COMMANDS_FILE_ARGUMENT_H_
#define MUSTER_CLI_COMMANDS_FILE_ARGUMENT_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::cli {

// Reads the file, or stdin if its name is "-". The errors of ReadFileBounded.
absl::StatusOr<std::string> ReadFileArgument(const std::string& file, size_t max_bytes);

// Names the file in the subject of a service's answer to its content. Returns other errors
// unchanged.
absl::Status WithFile(const absl::Status& status, const std::string& file);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_FILE_ARGUMENT_H_
