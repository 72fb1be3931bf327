// muster conformance.
#ifndef MUSTER_CLI_COMMANDS_CONFORMANCE_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_CONFORMANCE_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddConformanceCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_CONFORMANCE_COMMANDS_H_
