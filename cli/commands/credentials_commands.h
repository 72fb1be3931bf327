// The command `muster credentials export`.
#ifndef MUSTER_CLI_COMMANDS_CREDENTIALS_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_CREDENTIALS_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddCredentialsCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_CREDENTIALS_COMMANDS_H_
