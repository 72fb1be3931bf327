// The token file of a machine that joins.
#ifndef MUSTER_CLI_COMMANDS_TOKEN_FILE_H_
#define MUSTER_CLI_COMMANDS_TOKEN_FILE_H_

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/identity/join_token.h"

namespace muster::cli {

// Reads a token from a file that only its owner can read, or from stdin for "-". The error names
// the file.
absl::StatusOr<JoinToken> ReadTokenFile(const std::string& file);

// Adds --link, by which a machine that joins connects to the fleet.
void AddLinkOption(CLI::App& command, std::string& link);

// Marks an error of joining as the answer of a service if it is one (exit_code.h). Other errors are
// local. `subject`: "node n1".
absl::Status MarkJoinError(const absl::Status& failure, const std::string& subject);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_TOKEN_FILE_H_
