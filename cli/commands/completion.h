// Completion scripts for shells, generated from the declared commands.
#ifndef MUSTER_CLI_COMMANDS_COMPLETION_H_
#define MUSTER_CLI_COMMANDS_COMPLETION_H_

#include <string>

#include "CLI/CLI.hpp"

namespace muster::cli {

enum class Shell { kBash, kZsh, kFish };

// Returns a script that completes `app`'s visible commands, their options, and the values of
// options that have a fixed choice or name a file.
std::string CompletionScript(const CLI::App& app, Shell shell);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_COMPLETION_H_
