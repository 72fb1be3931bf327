// The commands `muster run`, `runs`, `cancel` and `delete`.
#ifndef MUSTER_CLI_COMMANDS_RUN_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_RUN_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddRunCommand(CommandLine& line);    // run: run_command.cc
void AddRunsCommands(CommandLine& line);  // the others

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_RUN_COMMANDS_H_
