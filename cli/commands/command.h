// How a command is made known: its arguments, its help, and what it does.
//
// A group of commands is one file with one function `Add...Commands(CommandLine&)` that is called
// in app.cc. It declares the arguments with CLI11 and leaves an Action behind, which runs once all
// arguments were found right.
#ifndef MUSTER_CLI_COMMANDS_COMMAND_H_
#define MUSTER_CLI_COMMANDS_COMMAND_H_

#include <functional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "cli/output/console.h"

namespace muster::cli {

// Does the work of a command and gives the exit code. An error is printed by the caller.
using Action = std::function<absl::StatusOr<int>(Console&)>;

// Not thread-safe. Options of commands write into it while the arguments are parsed.
struct CommandLine {
  CLI::App app{"Gathers results, status and files from every node of a fleet."};
  Action action;             // of the command that was named
  std::string command;       // its whole name: "muster operator add"
  bool json = false;         // --json
  std::string context_file;  // --context; empty if not given
};

struct CommandText {
  std::string name;
  std::string summary;  // one sentence
  std::string details;  // more about it, or empty
  std::string example;  // one or more lines
};

// Adds a command below `parent` (line.app, or a command that only groups others).
CLI::App& AddCommand(CLI::App& parent, const CommandText& text);

// What to do when `command` is the one that was named.
void SetAction(CommandLine& line, CLI::App& command, Action action);

// --json: for every command that prints data.
void AddJsonOption(CommandLine& line, CLI::App& command);

// --context FILE: for every command that talks to services.
void AddContextOption(CommandLine& line, CLI::App& command);

// Options whose value has a kind that help and completion know by this name. A choice is written
// "json|env|kubernetes".
inline constexpr char kFileValue[] = "FILE";
inline constexpr char kFolderValue[] = "FOLDER";

// Restricts an option to the words of `choices` ("report|detailed|dump") and shows them in its
// help.
void AllowOnly(CLI::Option& option, const std::string& choices);

// Restricts an option to whole numbers from `min` to `max`.
void AllowRange(CLI::Option& option, int min, int max);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_COMMAND_H_
