// The command `muster retrieve`.
#ifndef MUSTER_CLI_COMMANDS_RETRIEVE_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_RETRIEVE_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddRetrieveCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_RETRIEVE_COMMANDS_H_
