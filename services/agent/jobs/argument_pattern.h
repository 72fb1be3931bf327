// Patterns of a policy for the arguments of commands.
#ifndef MUSTER_SERVICES_AGENT_JOBS_ARGUMENT_PATTERN_H_
#define MUSTER_SERVICES_AGENT_JOBS_ARGUMENT_PATTERN_H_

#include <span>
#include <string>
#include <string_view>

namespace muster {

// Returns whether one argument matches: `*` stands for any characters, in a `path` for any but '/';
// `\` quotes the next character.
bool FitsArgument(std::string_view pattern, std::string_view argument, bool path = false);

// Returns whether a whole command matches, element by element, the first as a path. A last "**"
// admits any number of further arguments.
bool FitsCommand(std::span<const std::string> patterns, std::span<const std::string> argv);

// Returns whether it is an absolute path without ".", ".." and empty parts.
bool IsPlainAbsolutePath(std::string_view path);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_ARGUMENT_PATTERN_H_
