// muster backup and muster restore: copies of $MUSTER_HOME.
#ifndef MUSTER_CLI_COMMANDS_BACKUP_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_BACKUP_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddBackupCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_BACKUP_COMMANDS_H_
