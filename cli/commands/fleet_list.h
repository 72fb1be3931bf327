// `muster shared list` for operators.
#ifndef MUSTER_CLI_COMMANDS_FLEET_LIST_H_
#define MUSTER_CLI_COMMANDS_FLEET_LIST_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/commands/command.h"
#include "cli/commands/fleet_shares.h"

namespace muster::cli {

// Prints the shared files at `relay`, or at all relays if it is empty, and the used and free quota.
// Prints the error for a relay that does not answer; returns the error if `relay` names it.
absl::StatusOr<int> ListFleetShares(Console& console, const CommandLine& line, FleetShares& fleet,
                                    const std::string& relay);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_FLEET_LIST_H_
