// The commands `muster type` and `muster template`: the documents of template types and templates.
#ifndef MUSTER_CLI_COMMANDS_TEMPLATE_COMMANDS_H_
#define MUSTER_CLI_COMMANDS_TEMPLATE_COMMANDS_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddTemplateCommands(CommandLine& line);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_TEMPLATE_COMMANDS_H_
