// The output of a secret.
#ifndef MUSTER_CLI_COMMANDS_SECRET_OUTPUT_H_
#define MUSTER_CLI_COMMANDS_SECRET_OUTPUT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cli/output/console.h"

namespace muster::cli {

// Writes `content` to the file atomically with mode 0600, or to stdout if `file` is empty or "-".
absl::Status WriteSecretOutput(Console& console, const std::string& file, std::string_view content);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_SECRET_OUTPUT_H_
