// The whole program below main(): every command, and what its outcome means.
#ifndef MUSTER_CLI_APP_H_
#define MUSTER_CLI_APP_H_

#include <memory>

#include "cli/commands/command.h"
#include "cli/output/console.h"

namespace muster::cli {

// All commands, ready to parse.
std::unique_ptr<CommandLine> MakeCommandLine();

// Parses the arguments, does what they ask for, prints what went wrong, and gives the exit code
// (exit_code.h).
int RunProgram(int argc, const char* const* argv, Console& console);

}  // namespace muster::cli

#endif  // MUSTER_CLI_APP_H_
