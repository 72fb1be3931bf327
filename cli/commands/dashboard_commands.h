// The command `muster dashboard`.
#ifndef MUSTER_CLI_COMMANDS_DASHBOARD_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_DASHBOARD_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddDashboardCommand(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_DASHBOARD_COMMANDS_H_
