#include "services/common/base/utf8.h"

#include <cstdint>
#include <cstring>

namespace muster {
namespace {

bool IsControl(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) ||  // C0, DEL, C1
         (c >= 0x2028 && c <= 0x202e) ||         // separators, embeddings and overrides
         (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0x061c;
}

// How many bytes the character at the beginning takes, and which it is; 0 if that is not UTF-8.
size_t Decode(std::string_view text, uint32_t* character) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  size_t length = 1;
  uint32_t c = first;
  uint32_t smallest = 0;  // a longer form of a smaller character is not UTF-8
  if (first >= 0xf0 && first < 0xf8) {
    length = 4, c = first & 0x07, smallest = 0x10000;
  } else if (first >= 0xe0 && first < 0xf0) {
    length = 3, c = first & 0x0f, smallest = 0x800;
  } else if (first >= 0xc0 && first < 0xe0) {
    length = 2, c = first & 0x1f, smallest = 0x80;
  } else if (first >= 0x80) {
    return 0;
  }
  if (text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    c = c << 6 | (byte(i) & 0x3f);
  }
  const bool surrogate = c >= 0xd800 && c < 0xe000;
  *character = c;
  return c < smallest || c > 0x10ffff || surrogate ? 0 : length;
}

// How many bytes at the beginning are ASCII, or a little fewer: eight at a time.
size_t AsciiLength(std::string_view text) {
  size_t length = 0;
  for (uint64_t eight; length + sizeof eight <= text.size(); length += sizeof eight) {
    std::memcpy(&eight, text.data() + length, sizeof eight);
    if ((eight & 0x8080808080808080) != 0) break;
  }
  return length;
}

}  // namespace

size_t PrintableLength(std::string_view text) {
  uint32_t character = 0;
  const size_t length = Decode(text, &character);
  return length == 0 || IsControl(character) ? 0 : length;
}

bool IsUtf8(std::string_view text) {
  uint32_t character = 0;
  for (;;) {
    text.remove_prefix(AsciiLength(text));
    if (text.empty()) return true;
    const size_t length = Decode(text, &character);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
}

std::string CleanUtf8(std::string_view text) {
  static constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  if (IsUtf8(text)) return std::string(text);
  std::string clean;
  clean.reserve(text.size() + kReplacement.size());
  uint32_t character = 0;
  while (!text.empty()) {
    const size_t length = Decode(text, &character);
    clean += length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return clean;
}

std::string_view CutUtf8(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  // Before a continuation byte is within a character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace muster
