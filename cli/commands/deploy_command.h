// The command `muster deploy`.
#ifndef MUSTER_CLI_COMMANDS_DEPLOY_COMMAND_H_
#define MUSTER_CLI_COMMANDS_DEPLOY_COMMAND_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddDeployCommand(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_DEPLOY_COMMAND_H_
