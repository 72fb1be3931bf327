// The commands `muster token`: join tokens.
#ifndef MUSTER_CLI_COMMANDS_TOKEN_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_TOKEN_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddTokenCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_TOKEN_COMMANDS_H_
