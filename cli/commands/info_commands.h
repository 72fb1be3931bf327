// The commands `muster version` and `muster completion`.
#ifndef MUSTER_CLI_COMMANDS_INFO_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_INFO_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddInfoCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_INFO_COMMANDS_H_
