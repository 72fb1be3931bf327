// The commands `muster relay`, for the machine of a relay.
#ifndef MUSTER_CLI_COMMANDS_RELAY_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_RELAY_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddRelayCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_RELAY_COMMANDS_H_
