// muster audit.
#ifndef MUSTER_CLI_COMMANDS_AUDIT_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_AUDIT_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddAuditCommand(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_AUDIT_COMMANDS_H_
