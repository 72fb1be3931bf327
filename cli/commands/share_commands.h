// The commands `muster share` and `muster shared`: files from one node to another.
#ifndef MUSTER_CLI_COMMANDS_SHARE_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_SHARE_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddShareCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_SHARE_COMMANDS_H_
