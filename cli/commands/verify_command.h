// muster verify: compares the stored results with their records.
#ifndef MUSTER_CLI_COMMANDS_VERIFY_COMMAND_H_
#define MUSTER_CLI_COMMANDS_VERIFY_COMMAND_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddVerifyCommand(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_VERIFY_COMMAND_H_
