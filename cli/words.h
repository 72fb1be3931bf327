// Separates options, their values and arguments before CLI11 parses the words of a command line.
//
// CLI11 alone has these faults: a list option consumes all plain words that follow and then "--"
// itself. "--" is accepted as a value. It ends the options of the named command only. An argument
// in brackets ("[a,b]") is split into several. `muster exec` signs the words that the operator
// typed, so none of these may happen.
//
// The rules are those of POSIX and GNU programs:
// * "--" ends the options. All words after it are arguments of the named command.
// * An option takes one value: the text after "=", or the next word. That next word is neither "--"
//   nor, unless the value is free text, an option of the command: in `run -n --wait` the name is
//   missing.
//   An option that takes a list takes one value each time it is given.
// * Options and arguments may be mixed, except in a command that declares positionals_at_end():
//   there all words after the first argument are arguments, "--" included.
#ifndef MUSTER_CLI_WORDS_H_
#define MUSTER_CLI_WORDS_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace muster::cli {

// Parses `words`, without the program's name. Throws the exceptions of CLI::App::parse; their texts
// may contain marks. Call it at most once for an app.
void ParseWords(CLI::App& app, const std::vector<std::string>& words);

// Removes the marks of ParseWords from a message of CLI11.
std::string WithoutMarks(std::string text);

}  // namespace muster::cli

#endif  // MUSTER_CLI_WORDS_H_
