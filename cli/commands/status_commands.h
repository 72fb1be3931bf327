// The commands `muster status` and `muster wait`.
#ifndef MUSTER_CLI_COMMANDS_STATUS_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_STATUS_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddStatusCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_STATUS_COMMANDS_H_
