// The output of a secret.
#ifndef MUSTER_CLI_COMMANDS_SECRET_OUTPUT_H_
#define MUSTER_CLI_COMMANDS_SECRET_OUTPUT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cli/output/console.h"

namespace muster::cli {

// Returns an error if WriteSecretOutput could not create `file`, the value of `option`. Call it
// before a request creates the secret, which would be lost. Fails with ALREADY_EXISTS (FILE_EXISTS)
// if `file` is a file with content: it may be another secret, which cannot be restored.
absl::Status CheckNewSecretOutput(const std::string& option, const std::string& file);

// Writes `content` to the file atomically with mode 0600, or to stdout if `file` is empty or "-".
absl::Status WriteSecretOutput(Console& console, const std::string& file, std::string_view content);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_SECRET_OUTPUT_H_
