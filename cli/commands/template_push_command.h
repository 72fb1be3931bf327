// `muster template push`.
#ifndef MUSTER_CLI_COMMANDS_TEMPLATE_PUSH_COMMAND_H_
#define MUSTER_CLI_COMMANDS_TEMPLATE_PUSH_COMMAND_H_

#include "cli/commands/command.h"

namespace muster::cli {

void AddTemplatePushCommand(CommandLine& line, CLI::App& templates);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_TEMPLATE_PUSH_COMMAND_H_
