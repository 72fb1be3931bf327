// Valid and printable UTF-8.
#ifndef MUSTER_SERVICES_COMMON_BASE_UTF8_H_
#define MUSTER_SERVICES_COMMON_BASE_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

// Returns the number of bytes of the first character of `text` if it is printable: 1 to 4. Returns
// 0 for a control character (C0, DEL, C1, line and paragraph separators, the marks that turn the
// direction of text), and for bytes that are not UTF-8. `text` must not be empty.
size_t PrintableLength(std::string_view text);

// Returns whether `text` is valid UTF-8, printable or not.
bool IsUtf8(std::string_view text);

// Returns `text` with U+FFFD in place of each byte that is not UTF-8.
std::string CleanUtf8(std::string_view text);

// Returns at most `max_bytes` of the beginning of `text`, without cutting a character.
std::string_view CutUtf8(std::string_view text, size_t max_bytes);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_UTF8_H_
