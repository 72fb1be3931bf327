#include "services/common/base/image_reference.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"

namespace muster {
namespace {

constexpr size_t kMaxReference = 512;
constexpr std::string_view kAlgorithm = "sha256:";
constexpr size_t kDigits = 64;

bool IsDigest(std::string_view text) {
  if (!text.starts_with(kAlgorithm)) return false;
  text.remove_prefix(kAlgorithm.size());
  return text.size() == kDigits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool IsAlphanumeric(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

// A part begins and ends with a letter or a digit.
bool IsPart(std::string_view part) {
  return !part.empty() && IsAlphanumeric(part.front()) && IsAlphanumeric(part.back()) &&
         std::ranges::all_of(part, [](char c) {
           return IsAlphanumeric(c) || c == '.' || c == '_' || c == '-' || c == ':';
         });
}

}  // namespace

bool IsImageByContent(std::string_view reference) {
  if (reference.size() > kMaxReference) return false;
  const size_t at = reference.find('@');
  if (at == std::string_view::npos) return IsDigest(reference);
  if (!IsDigest(reference.substr(at + 1))) return false;
  std::string_view name = reference.substr(0, at);
  for (;;) {
    const size_t slash = name.find('/');
    if (!IsPart(name.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

}  // namespace muster
