// Declares a command: its arguments, its help, and its action.
//
// A group of commands is one file with one function `Add...Commands(CommandLine&)`, which app.cc
// calls. The function declares the arguments with CLI11 and sets an Action, which runs after all
// arguments were parsed.
#ifndef MUSTER_CLI_COMMANDS_COMMAND_H_
#define MUSTER_CLI_COMMANDS_COMMAND_H_

#include <cstdint>
#include <functional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "cli/output/console.h"

namespace muster::cli {

// Runs a command and returns its exit code. The caller prints an error.
using Action = std::function<absl::StatusOr<int>(Console&)>;

// Not thread-safe. The options write into it while the arguments are parsed.
struct CommandLine {
  CLI::App app{"Collects results, status and files from every node of a fleet."};
  Action action;               // of the innermost command
  std::string command;         // its full name: "muster operator add"
  bool json = false;           // --json
  std::string context_file;    // --context; empty if not given
  std::string color = "auto";  // --color
};

struct CommandText {
  std::string name;
  std::string summary;  // one sentence
  std::string details;  // further sentences, or empty; each line is a paragraph
  std::string example;  // one or more lines
};

inline constexpr size_t kHelpWidth = 80;

// Adds a command to `parent` (line.app, or a command that groups others).
CLI::App& AddCommand(CLI::App& parent, const CommandText& text);

// Sets the action of `command`.
void SetAction(CommandLine& line, CLI::App& command, Action action);

// Adds --json, for commands that print data.
void AddJsonOption(CommandLine& line, CLI::App& command);

// Adds --color, for commands that print states.
void AddColorOption(CommandLine& line, CLI::App& command);

// Adds --context FILE, for commands that call services.
void AddContextOption(CommandLine& line, CLI::App& command);

// Adds --dir FOLDER, for commands of a node; NodeFolderPath returns the folder.
void AddNodeFolderOption(CLI::App& command, std::string& folder);

// Type names of option values, for help and completion. A choice is written "json|env|kubernetes".
inline constexpr char kFileValue[] = "FILE";
inline constexpr char kFolderValue[] = "FOLDER";
inline constexpr char kTextValue[] = "TEXT";  // free text, which may be empty

// Restricts an option to the words of `choices` ("report|detailed|dump") and shows them in its
// help.
void AllowOnly(CLI::Option& option, const std::string& choices);

// Restricts an option to whole numbers from `min` to `max`.
void AllowRange(CLI::Option& option, int64_t min, int64_t max);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_COMMAND_H_
