// Text of other machines and users, for one line of a message, a log or a terminal.
#ifndef MUSTER_SERVICES_COMMON_BASE_PRINTABLE_H_
#define MUSTER_SERVICES_COMMON_BASE_PRINTABLE_H_

#include <string>
#include <string_view>

namespace muster {

// Replaces each control character in `text`, and each byte that is not UTF-8, by '?', and newlines
// and tabs by spaces.
std::string Printable(std::string_view text);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_PRINTABLE_H_
