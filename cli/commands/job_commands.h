// The commands `muster job`: jobs and their records.
#ifndef MUSTER_CLI_COMMANDS_JOB_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_JOB_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddJobCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_JOB_COMMANDS_H_
