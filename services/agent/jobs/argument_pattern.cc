#include "services/agent/jobs/argument_pattern.h"

#include <cstddef>

namespace muster {

bool FitsArgument(std::string_view pattern, std::string_view argument, bool path) {
  // The usual matching with one place to go back to: the last star seen, which takes one character
  // more each time.
  size_t p = 0;
  size_t a = 0;
  size_t after_star = std::string_view::npos;
  size_t taken_until = 0;
  while (a < argument.size() || p < pattern.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      taken_until = a;
      continue;
    }
    const bool escaped = p + 1 < pattern.size() && pattern[p] == '\\';
    const size_t literal = p + (escaped ? 1 : 0);
    if (a < argument.size() && literal < pattern.size() && pattern[literal] == argument[a]) {
      p = literal + 1;
      ++a;
      continue;
    }
    const bool can_take = after_star != std::string_view::npos && taken_until < argument.size() &&
                          !(path && argument[taken_until] == '/');
    if (!can_take) return false;
    p = after_star;
    a = ++taken_until;
  }
  return true;
}

bool FitsCommand(std::span<const std::string> patterns, std::span<const std::string> argv) {
  if (patterns.empty() || argv.empty()) return false;
  const bool open_end = patterns.back() == "**";
  const size_t fixed = patterns.size() - (open_end ? 1 : 0);
  if (open_end ? argv.size() < fixed : argv.size() != fixed) return false;
  for (size_t i = 0; i < fixed; ++i) {
    if (!FitsArgument(patterns[i], argv[i], i == 0)) return false;
  }
  return true;
}

bool IsPlainAbsolutePath(std::string_view path) {
  if (path.size() < 2 || path[0] != '/') return false;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::string_view part = path.substr(0, path.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    path.remove_prefix(part.size());
  }
  return true;
}

}  // namespace muster
