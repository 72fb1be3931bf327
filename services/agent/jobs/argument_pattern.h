// Patterns of a policy for the arguments of commands.
#ifndef MUSTER_SERVICES_AGENT_JOBS_ARGUMENT_PATTERN_H_
#define MUSTER_SERVICES_AGENT_JOBS_ARGUMENT_PATTERN_H_

#include <span>
#include <string>
#include <string_view>

namespace muster {

// Whether one argument fits: `*` stands for any characters, in a `path` for any but '/'; `\` takes
// the next character as it is.
bool FitsArgument(std::string_view pattern, std::string_view argument, bool path = false);

// Whether a whole command fits: element by element, the first as a path; a last "**" admits any
// number of further arguments.
bool FitsCommand(std::span<const std::string> patterns, std::span<const std::string> argv);

// Whether it is an absolute path without ".", ".." and empty parts: names what it seems to name.
bool IsPlainAbsolutePath(std::string_view path);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_ARGUMENT_PATTERN_H_
