// What a user may write for RUN.
#ifndef MUSTER_CLI_RPC_RUN_REFERENCE_H_
#define MUSTER_CLI_RPC_RUN_REFERENCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/rpc/client.h"

namespace muster::cli {

// The id of the run that `text` means: an id, the beginning of exactly one, or the newest run if it
// is empty. NOT_FOUND (NO_RUNS, RUN_NOT_FOUND); INVALID_ARGUMENT for what can be no id, or for the
// beginning of several.
absl::StatusOr<std::string> ResolveRun(Client& client, const std::string& text);

// What an error of a service means that was asked for the newest run: RUN_NOT_FOUND becomes
// NO_RUNS.
absl::Status OrNoRuns(const absl::Status& status);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_RUN_REFERENCE_H_
