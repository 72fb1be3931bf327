// The commands `muster operator`.
#ifndef MUSTER_CLI_COMMANDS_OPERATOR_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_OPERATOR_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddOperatorCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_OPERATOR_COMMANDS_H_
