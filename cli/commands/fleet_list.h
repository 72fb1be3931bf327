// `muster shared list` for an operator.
#ifndef MUSTER_CLI_COMMANDS_FLEET_LIST_H_
#define MUSTER_CLI_COMMANDS_FLEET_LIST_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/commands/command.h"
#include "cli/commands/fleet_shares.h"

namespace muster::cli {

// What lies at `relay`, or at all of them if it is empty, and how much room there is. One that
// cannot be asked is named with the reason; if that is the only one, it is the error.
absl::StatusOr<int> ListFleetShares(Console& console, const CommandLine& line, FleetShares& fleet,
                                    const std::string& relay);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_FLEET_LIST_H_
