// retrieve.
#ifndef MUSTER_CLI_RETRIEVE_COMMANDS_H_
#define MUSTER_CLI_RETRIEVE_COMMANDS_H_

#include "cli/command.h"

namespace muster::cli {

void AddRetrieveCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RETRIEVE_COMMANDS_H_
