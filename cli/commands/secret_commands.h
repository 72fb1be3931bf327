// The commands `muster secret`.
#ifndef MUSTER_CLI_COMMANDS_SECRET_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_SECRET_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddSecretCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_SECRET_COMMANDS_H_
