// Declares `muster deployment retry` and `muster deployment destroy`.
#ifndef MUSTER_CLI_COMMANDS_SUCCESSOR_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_SUCCESSOR_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

// Adds them to `group`, which is `muster deployment`.
void AddSuccessorCommands(CommandLine& line, CLI::App& group);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_SUCCESSOR_COMMANDS_H_
