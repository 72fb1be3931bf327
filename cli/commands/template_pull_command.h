// `muster template pull`.
#ifndef MUSTER_CLI_COMMANDS_TEMPLATE_PULL_COMMAND_H_
#define MUSTER_CLI_COMMANDS_TEMPLATE_PULL_COMMAND_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddTemplatePullCommand(CommandLine& line, CLI::App& templates);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_TEMPLATE_PULL_COMMAND_H_
