#include "services/common/identity/run_host.h"

#include <algorithm>
#include <cstddef>

namespace muster {
namespace {

constexpr std::string_view kPlaceholder = "{run}";
constexpr std::string_view kSomeRun = "0123456789012345";
constexpr size_t kMaxHost = 253;
constexpr size_t kMaxLabel = 63;

bool IsLetter(char c) { return 'a' <= c && c <= 'z'; }
bool IsDigit(char c) { return '0' <= c && c <= '9'; }

bool IsLabel(std::string_view label) {
  return !label.empty() && label.size() <= kMaxLabel && label.front() != '-' &&
         label.back() != '-' &&
         std::ranges::all_of(label, [](char c) { return IsLetter(c) || IsDigit(c) || c == '-'; });
}

// The last label must contain a letter, so that the name cannot be an address.
bool IsDnsName(std::string_view host) {
  if (host.size() > kMaxHost) return false;
  const size_t last = host.rfind('.');
  if (last == std::string_view::npos || std::ranges::none_of(host.substr(last + 1), IsLetter)) {
    return false;
  }
  while (true) {
    const size_t dot = host.find('.');
    if (!IsLabel(host.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    host.remove_prefix(dot + 1);
  }
}

}  // namespace

bool IsRunHostPattern(std::string_view pattern) {
  const size_t place = pattern.find(kPlaceholder);
  return place != std::string_view::npos && IsDnsName(HostOfRun(pattern, kSomeRun));
}

std::string HostOfRun(std::string_view pattern, std::string_view run) {
  std::string host(pattern);
  return host.replace(host.find(kPlaceholder), kPlaceholder.size(), run);
}

bool IsHostOfRun(std::string_view host, std::string_view run) {
  return host.find(run) != std::string_view::npos;
}

}  // namespace muster
