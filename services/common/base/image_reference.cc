#include "services/common/base/image_reference.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

constexpr size_t kMaxReference = 512;
constexpr std::string_view kAlgorithm = "sha256:";
constexpr size_t kDigits = 64;
constexpr size_t kMaxRegistryPrefix = 255;

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

// Returns whether each part between slashes is one.
bool HasParts(std::string_view name) {
  for (;;) {
    const size_t slash = name.find('/');
    if (!IsPart(name.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

// Returns the registry that a name begins with; empty if it begins with none.
std::string_view NamedRegistry(std::string_view image) {
  const std::string_view first = image.substr(0, image.find('/'));
  const bool named = first.size() < image.size() &&
                     (first == "localhost" || first.find_first_of(".:") != std::string_view::npos);
  return named ? first : "";
}

bool IsDockerHub(std::string_view host) {
  return host == kDockerHub || host == "index.docker.io" || host == "registry-1.docker.io";
}

}  // namespace

bool IsImageByContent(std::string_view reference) {
  if (reference.size() > kMaxReference) return false;
  const size_t at = reference.find('@');
  if (at == std::string_view::npos) return IsDigest(reference);
  if (!IsDigest(reference.substr(at + 1))) return false;
  return HasParts(reference.substr(0, at));
}

std::string RegistryOf(std::string_view image) {
  const std::string_view named = NamedRegistry(image);
  return std::string(named.empty() || IsDockerHub(named) ? kDockerHub : named);
}

std::string RepositoryOf(std::string_view image) {
  const std::string_view registry = NamedRegistry(image);
  if (!registry.empty()) image.remove_prefix(registry.size() + 1);
  image = image.substr(0, image.find('@'));
  image = image.substr(0, image.find(':'));
  const bool official =
      (registry.empty() || IsDockerHub(registry)) && image.find('/') == std::string_view::npos;
  return absl::StrCat(official ? "library/" : "", ToAbsl(image));
}

std::string_view DigestOf(std::string_view image) {
  const size_t at = image.find('@');
  return at == std::string_view::npos ? "" : image.substr(at + 1);
}

bool IsRegistryPrefix(std::string_view text) {
  if (text.size() > kMaxRegistryPrefix || !HasParts(text)) return false;
  // A repository has no colon, and is lower case.
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return true;
  return std::ranges::none_of(text.substr(slash), [](char c) {
    return c == ':' || absl::ascii_isupper(static_cast<unsigned char>(c));
  });
}

std::string ImageInRegistry(std::string_view image, std::string_view registry) {
  return absl::StrCat(ToAbsl(registry), "/", RepositoryOf(image), "@", ToAbsl(DigestOf(image)));
}

}  // namespace muster
