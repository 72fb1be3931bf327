// Which bytes may be shown or stored as text.
#ifndef MUSTER_SERVICES_COMMON_BASE_UTF8_H_
#define MUSTER_SERVICES_COMMON_BASE_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

// How many bytes at the beginning of `text` are one printable character in UTF-8: 1 to 4, or 0 if
// they are a control character (C0, DEL, C1, line and paragraph separators, the marks that turn
// the direction of text) or not UTF-8 at all. `text` must not be empty.
size_t PrintableLength(std::string_view text);

// Returns whether `text` is valid UTF-8, printable or not.
bool IsUtf8(std::string_view text);

// `text` with U+FFFD in place of every byte that is not UTF-8.
std::string CleanUtf8(std::string_view text);

// The beginning of `text`, at most `max_bytes` of it, not cut within a character.
std::string_view CutUtf8(std::string_view text, size_t max_bytes);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_UTF8_H_
