// The commands `muster retention`, `pin` and `unpin`.
#ifndef MUSTER_CLI_COMMANDS_RETENTION_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_RETENTION_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddRetentionCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_RETENTION_COMMANDS_H_
