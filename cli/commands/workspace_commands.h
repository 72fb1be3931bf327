// muster workspace: list, show, versions, restore, unlock, delete.
#ifndef MUSTER_CLI_COMMANDS_WORKSPACE_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_WORKSPACE_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddWorkspaceCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_WORKSPACE_COMMANDS_H_
