// The commands `muster up`, `down` and `supervise`.
#ifndef MUSTER_CLI_COMMANDS_SERVICE_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_SERVICE_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddServiceCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_SERVICE_COMMANDS_H_
