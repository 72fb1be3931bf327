// The commands `muster deployment`.
#ifndef MUSTER_CLI_COMMANDS_DEPLOYMENT_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_DEPLOYMENT_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddDeploymentCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_DEPLOYMENT_COMMANDS_H_
