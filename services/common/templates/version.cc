#include "services/common/templates/version.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "services/common/base/names.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

constexpr size_t kMaxVersion = 64;
constexpr size_t kMaxDigits = 9;

bool IsDigits(std::string_view text) { return std::ranges::all_of(text, absl::ascii_isdigit); }

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= kMaxDigits && IsDigits(text) &&
         (text == "0" || text.front() != '0');
}

bool IsPreReleasePart(std::string_view part) {
  return !part.empty() && (!IsDigits(part) || part == "0" || part.front() != '0') &&
         std::ranges::all_of(part, [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-';
         });
}

std::string Padded(std::string_view digits, size_t width) {
  return absl::StrCat(std::string(width - digits.size(), '0'), ToAbsl(digits));
}

// Each number ends with a dot, so that the key of 1.2 is no prefix of that of 1.20.
std::string NumbersKey(const std::vector<std::string>& numbers) {
  std::string key;
  for (const std::string& number : numbers) absl::StrAppend(&key, Padded(number, kMaxDigits), ".");
  return key;
}

// A number sorts before a word, and a shorter list before a longer one that continues it: a space
// sorts before every other character.
std::string PreReleaseKey(std::string_view parts) {
  std::string key = "-";
  for (const absl::string_view part : absl::StrSplit(ToAbsl(parts), '.')) {
    if (IsDigits(ToStd(part))) {
      absl::StrAppend(&key, "1", Padded(ToStd(part), kMaxVersion), " ");
    } else {
      absl::StrAppend(&key, "2", part, " ");
    }
  }
  return key;
}

}  // namespace

bool IsVersion(std::string_view text) {
  if (text.size() > kMaxVersion) return false;
  const size_t dash = text.find('-');
  const std::vector<std::string> numbers = absl::StrSplit(ToAbsl(text.substr(0, dash)), '.');
  if (numbers.size() != 3 || !std::ranges::all_of(numbers, IsNumber)) return false;
  if (dash == std::string_view::npos) return true;
  const std::vector<std::string> parts = absl::StrSplit(ToAbsl(text.substr(dash + 1)), '.');
  return std::ranges::all_of(parts, IsPreReleasePart);
}

std::string VersionSortKey(std::string_view version) {
  const size_t dash = version.find('-');
  const std::string numbers = NumbersKey(absl::StrSplit(ToAbsl(version.substr(0, dash)), '.'));
  // A release sorts after its pre-releases.
  return numbers + (dash == std::string_view::npos ? "~" : PreReleaseKey(version.substr(dash + 1)));
}

std::optional<VersionReference> ParseVersionReference(std::string_view text) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(ToAbsl(text), absl::MaxSplits('@', 1));
  VersionReference reference;
  reference.name = parts.first;
  if (!ValidateName("a name", reference.name).ok()) return std::nullopt;
  if (text.find('@') == std::string_view::npos) return reference;
  if (IsVersion(parts.second)) {
    reference.version = parts.second;
    return reference;
  }
  const std::vector<std::string> numbers = absl::StrSplit(parts.second, '.');
  if (numbers.size() > 2 || !std::ranges::all_of(numbers, IsNumber)) return std::nullopt;
  reference.key_prefix = NumbersKey(numbers);
  return reference;
}

}  // namespace muster
