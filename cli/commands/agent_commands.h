// The commands `muster agent` and `muster submit`.
#ifndef MUSTER_CLI_COMMANDS_AGENT_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_AGENT_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddAgentCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_AGENT_COMMANDS_H_
