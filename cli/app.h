// The program without main(): all commands, and the exit code of each outcome.
#ifndef MUSTER_CLI_APP_H_
#define MUSTER_CLI_APP_H_

#include <memory>

#include "cli/commands/command.h"
#include "cli/output/console.h"

namespace muster::cli {

// Returns all commands, ready to parse.
std::unique_ptr<CommandLine> MakeCommandLine();

// Parses the arguments, runs the command, prints its error, and returns the exit code
// (exit_code.h).
int RunProgram(int argc, const char* const* argv, Console& console);

}  // namespace muster::cli

#endif  // MUSTER_CLI_APP_H_
