// `muster template build`: builds the image of a template on a node, which creates the version.
#ifndef MUSTER_CLI_COMMANDS_TEMPLATE_BUILD_COMMAND_H_
#define MUSTER_CLI_COMMANDS_TEMPLATE_BUILD_COMMAND_H_

#include "cli/commands/command.h"

namespace muster::cli {

// Adds the command to `muster template`.
void AddTemplateBuildCommand(CommandLine& line, CLI::App& templates);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_TEMPLATE_BUILD_COMMAND_H_
