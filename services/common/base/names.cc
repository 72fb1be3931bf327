#include "services/common/base/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/base.h"

namespace muster {
namespace {

constexpr size_t kMaxShown = 64;  // of a refused name in a message

// A name that is too long keeps this much of its end, which shows its type (".tar.gz").
constexpr size_t kKeptEnd = 32;

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
}

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = PrintableLength(text);
    if (length == 0 || text[0] == '/' || text[0] == '\\') {
      out += '_';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

// Returns the beginning of a refused name for a message. Only control characters are replaced.
std::string Shown(std::string_view name) {
  std::string out;
  for (std::string_view rest = name.substr(0, kMaxShown); !rest.empty();) {
    const size_t length = std::max<size_t>(PrintableLength(rest), 1);
    out += PrintableLength(rest) == 0 ? "_" : std::string(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return name.size() > kMaxShown ? out + "..." : out;
}

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Shortens from the middle, between characters.
std::string Shorten(const std::string& name) {
  size_t head = kMaxFileName - kKeptEnd - 1;
  while (IsContinuation(name[head])) --head;
  size_t tail = name.size() - kKeptEnd;
  while (tail < name.size() && IsContinuation(name[tail])) ++tail;
  return absl::StrCat(name.substr(0, head), "_", name.substr(tail));
}

}  // namespace

absl::Status ValidateName(std::string_view what, std::string_view name) {
  std::string_view problem;
  if (name.empty()) {
    problem = "it is empty";
  } else if (name.size() > kMaxName) {
    problem = "it is longer than 253 bytes";
  } else if (name[0] == '.') {
    problem = "it begins with a dot";
  } else if (!std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    problem = "it contains characters other than A-Z a-z 0-9 . _ -";
  } else {
    return absl::OkStatus();
  }
  return errors::InvalidName(Shown(name), what, problem);
}

std::string SafeFileName(std::string_view raw) {
  std::string name = Printable(raw);
  if (name.empty()) return "_";
  if (name == "." || name == "..") return std::string(name.size(), '_');
  return name.size() > kMaxFileName ? Shorten(name) : name;
}

std::string ListNames(std::vector<std::string> names, size_t most) {
  const size_t more = names.size() - std::min(names.size(), most);
  names.resize(names.size() - more);
  return absl::StrCat(absl::StrJoin(names, ", "),
                      more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

}  // namespace muster
