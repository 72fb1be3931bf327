// credentials export.
#ifndef MUSTER_CLI_CREDENTIALS_COMMANDS_H_
#define MUSTER_CLI_CREDENTIALS_COMMANDS_H_

#include "cli/command.h"

namespace muster::cli {

void AddCredentialsCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_CREDENTIALS_COMMANDS_H_
