// Tells options, their values and arguments apart before CLI11 parses the words of a command line.
//
// CLI11 alone lets a list option consume all plain words that follow and then "--" itself, accepts
// "--" as a value, ends the options of the named command only, and splits an argument in brackets
// ("[a,b]") into several. `muster exec` signs what the operator typed, so none of these may happen.
//
// The rules are those of POSIX and GNU programs:
// * "--" ends the options. All words after it are arguments of the named command.
// * An option takes one value: the text after "=", or the next word. "--" is never that next word.
//   An option that takes a list takes one value each time it is given.
// * Options and arguments may be mixed, except in a command that declares positionals_at_end():
//   there all words after the first argument are arguments, "--" included.
#ifndef MUSTER_CLI_WORDS_H_
#define MUSTER_CLI_WORDS_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace muster::cli {

// Parses `words`, which do not contain the program's name. Throws what CLI::App::parse throws; its
// texts may contain marks. Called at most once for an app.
void ParseWords(CLI::App& app, const std::vector<std::string>& words);

// Removes the marks of ParseWords from a message of CLI11.
std::string WithoutMarks(std::string text);

}  // namespace muster::cli

#endif  // MUSTER_CLI_WORDS_H_
