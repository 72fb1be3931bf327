// The argument RUN of a command.
#ifndef MUSTER_CLI_RPC_RUN_REFERENCE_H_
#define MUSTER_CLI_RPC_RUN_REFERENCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/rpc/client.h"

namespace muster::cli {

// Returns the id of the run that `text` names: an id, a prefix of exactly one id, or the newest run
// if it is empty. Returns NOT_FOUND (NO_RUNS, RUN_NOT_FOUND), or INVALID_ARGUMENT if `text` cannot
// be an id or is a prefix of several.
absl::StatusOr<std::string> ResolveRun(Client& client, const std::string& text);

// Converts RUN_NOT_FOUND to NO_RUNS, for a request about the newest run.
absl::Status RunNotFoundToNoRuns(const absl::Status& status);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_RUN_REFERENCE_H_
