#include "services/common/rpc/channel_target.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

constexpr std::string_view kTunnel = "wss://";

bool IsIpv4(const std::string& host) {
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1;
}

bool IsIpv6(const std::string& host) {
  in6_addr address{};
  return inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

}  // namespace

bool IsTunnel(std::string_view text) { return text.starts_with(kTunnel); }

bool IsTunnel(const HostPort& address) { return IsTunnel(address.host); }

std::vector<HostPort> ParseTargets(absl::Span<const std::string> texts) {
  std::vector<HostPort> targets;
  targets.reserve(texts.size());
  for (const std::string& text : texts) {
    std::string_view address = text;
    if (IsTunnel(text)) address.remove_prefix(kTunnel.size());
    auto target = ParseHostPort(address);
    if (target && IsTunnel(text)) target->host.insert(0, kTunnel);
    targets.push_back(std::move(target).value_or(HostPort{text, 0}));
  }
  return targets;
}

std::vector<std::string> ResolveBySystem(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return {};
  std::vector<std::string> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(one->ai_addr, one->ai_addrlen, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      addresses.emplace_back(text.data());
    }
  }
  freeaddrinfo(found);
  return addresses;
}

bool NeedsResolution(absl::Span<const HostPort> addresses) {
  return addresses.size() > 1 && std::ranges::any_of(addresses, [](const HostPort& one) {
           return !IsIpv4(one.host) && !IsIpv6(one.host);
         });
}

std::string ChannelTarget(absl::Span<const HostPort> addresses, const ResolveName& resolve) {
  if (addresses.empty()) return "";
  const std::string first = absl::StrCat("dns:///", addresses.front().ToString());
  if (addresses.size() == 1) return first;
  std::vector<HostPort> numeric;
  for (const HostPort& address : addresses) {
    if (IsIpv4(address.host) || IsIpv6(address.host)) {
      numeric.push_back(address);
      continue;
    }
    for (const std::string& host : resolve(address.host)) {
      if (IsIpv4(host) || IsIpv6(host)) numeric.push_back({host, address.port});
    }
  }
  if (numeric.empty()) return first;
  const bool all_ipv4 =
      std::ranges::all_of(numeric, [](const HostPort& one) { return IsIpv4(one.host); });
  // One target has addresses of one family. An IPv4 address has a form in IPv6.
  const auto append = [all_ipv4](std::string* out, const HostPort& one) {
    if (all_ipv4) return absl::StrAppend(out, one.ToString());
    const char* const prefix = IsIpv4(one.host) ? "::ffff:" : "";
    absl::StrAppend(out, "%5B", prefix, one.host, "%5D:", one.port);  // brackets, encoded
  };
  return absl::StrCat(all_ipv4 ? "ipv4:" : "ipv6:", absl::StrJoin(numeric, ",", append));
}

}  // namespace muster
