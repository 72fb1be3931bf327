// Join tokens, as a machine that joins gets them.
#ifndef MUSTER_CLI_COMMANDS_TOKEN_FILE_H_
#define MUSTER_CLI_COMMANDS_TOKEN_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/identity/join_token.h"

namespace muster::cli {

// From a file that is for its owner alone, or for "-" from the standard input. The error names it.
absl::StatusOr<JoinToken> ReadTokenFile(const std::string& file);

// A failure to join, marked as the fleet's answer where it is one (exit_code.h): the others are
// this machine's. `what`: "node n1".
absl::Status JoinFailure(const absl::Status& failure, const std::string& what);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_TOKEN_FILE_H_
