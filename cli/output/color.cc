#include "cli/output/color.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"

namespace muster::cli {
namespace {

struct Word {
  std::string_view word;
  Color color;
};

constexpr Word kWords[] = {
    {"genuine", Color::kGood},
    {"online", Color::kGood},
    {"backpressured", Color::kWarning},
    {"blocked", Color::kWarning},
    {"cancelled", Color::kWarning},
    {"late", Color::kWarning},
    {"network lost", Color::kWarning},
    {"not responding", Color::kWarning},
    {"segment lost", Color::kWarning},
    {"slow", Color::kWarning},
    {"stuck", Color::kWarning},
    {"suspect", Color::kWarning},
    {"crashed", Color::kBad},
    {"failed", Color::kBad},
    {"lost", Color::kBad},
    {"timed out", Color::kBad},
    {"offline", Color::kFaint},
    {"unknown", Color::kFaint},
};

// Codes of the 8 colors, which every terminal and theme has.
std::string_view CodeOf(Color color) {
  switch (color) {
    case Color::kGood:
      return "32";
    case Color::kWarning:
      return "33";
    case Color::kBad:
      return "31";
    case Color::kFaint:
      return "2";
    case Color::kNone:
      return "";
  }
  return "";
}

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool IsDumb() {
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) == "dumb";
}

}  // namespace

Color ColorOfWord(std::string_view word) {
  const Word* found = std::ranges::find(kWords, word, &Word::word);
  return found == std::end(kWords) ? Color::kNone : found->color;
}

std::string Colored(std::string_view text, Color color) {
  if (color == Color::kNone || text.empty()) return std::string(text);
  return absl::StrCat("\x1b[", ToAbsl(CodeOf(color)), "m", ToAbsl(text), "\x1b[0m");
}

bool WantsColor(std::string_view choice, bool is_terminal) {
  if (choice == "always") return true;
  if (choice == "never") return false;
  return is_terminal && !IsSet("NO_COLOR") && !IsDumb();
}

}  // namespace muster::cli
