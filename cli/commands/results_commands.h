// The command `muster results`.
#ifndef MUSTER_CLI_COMMANDS_RESULTS_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_RESULTS_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddResultsCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_RESULTS_COMMANDS_H_
