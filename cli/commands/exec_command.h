// The command `muster exec`.
#ifndef MUSTER_CLI_COMMANDS_EXEC_COMMAND_H_
#define MUSTER_CLI_COMMANDS_EXEC_COMMAND_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddExecCommand(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_EXEC_COMMAND_H_
