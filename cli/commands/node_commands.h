// The commands `muster node` and `muster nodes`: the nodes and relays of the fleet.
#ifndef MUSTER_CLI_COMMANDS_NODE_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_NODE_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddNodeCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_NODE_COMMANDS_H_
