// The argument RUN of a command.
#ifndef MUSTER_CLI_RPC_RUN_REFERENCE_H_
#define MUSTER_CLI_RPC_RUN_REFERENCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/rpc/client.h"

namespace muster::cli {

// Returns the id of the run that `text` names: an id, or a prefix of exactly one id. Returns
// NOT_FOUND (RUN_NOT_FOUND), or a usage error if `text` is empty, cannot be an id, or is a prefix
// of several.
absl::StatusOr<std::string> ResolveRun(Client& client, const std::string& text);

// Like ResolveRun, but returns the newest run if `text` is empty: the optional argument is absent.
// Returns NOT_FOUND (NO_RUNS) if there is none. Not for commands that change runs.
absl::StatusOr<std::string> ResolveRunOrNewest(Client& client, const std::string& text);

// Converts RUN_NOT_FOUND to NO_RUNS, for a request about the newest run.
absl::Status RunNotFoundToNoRuns(const absl::Status& status);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_RUN_REFERENCE_H_
