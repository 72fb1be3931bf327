// Words of a command line as a POSIX shell reads them.
#ifndef MUSTER_SERVICES_COMMON_BASE_SHELL_QUOTE_H_
#define MUSTER_SERVICES_COMMON_BASE_SHELL_QUOTE_H_

#include <string>
#include <string_view>

namespace muster {

// Returns `text` in single quotes.
std::string ShellQuoted(std::string_view text);

// Appends `word` to a command line, quoted if necessary. A formatter of absl::StrJoin.
void AppendShellWord(std::string* line, std::string_view word);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_SHELL_QUOTE_H_
