#include "services/common/base/shell_quote.h"

namespace muster {

std::string ShellQuoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void AppendShellWord(std::string* line, std::string_view word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_@%+=:,./-") == std::string_view::npos;
  line->append(plain ? std::string(word) : ShellQuoted(word));
}

}  // namespace muster
