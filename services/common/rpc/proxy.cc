#include "services/common/rpc/proxy.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

constexpr char kScheme[] = "http://";
constexpr char kOfGrpc[] = "grpc_proxy";
constexpr char kOfHttps[] = "https_proxy";
constexpr std::array kShared = {kOfHttps, "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "http_proxy"};

bool IsSet(const char* variable) { return std::getenv(variable) != nullptr; }

std::string ValueOf(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

void Set(const char* variable, const std::string& value) {
  setenv(variable, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): before any thread
}

// Parses "[SCHEME://][USER:PASSWORD@]HOST[:PORT][/]". Returns nothing for an empty text.
std::optional<Proxy> Parse(const char* variable) {
  std::string text = ValueOf(variable);
  if (text.empty()) return std::nullopt;
  if (const size_t scheme = text.find("://"); scheme != std::string::npos) {
    text.erase(0, scheme + 3);
  }
  text.resize(std::min(text.size(), text.find('/')));
  text.erase(0, text.rfind('@') + 1);
  const size_t colon = text.rfind(':');
  const bool has_port = colon != std::string::npos && text.back() != ']';
  return Proxy{variable, text.substr(0, has_port ? colon : text.size()),
               has_port ? text.substr(colon + 1) : ""};
}

// Returns why gRPC or curl cannot use the proxy; empty if they can.
std::string FaultOf(const Proxy& proxy) {
  const std::string url = ValueOf(proxy.variable.c_str());
  int port = 0;
  if (absl::StrContains(url, "://") && !absl::StartsWithIgnoreCase(url, kScheme)) {
    return "it does not begin with http://";
  }
  // gRPC takes no URL with a character that has to be escaped, such as a second "@".
  const auto is_plain = [](char c) { return absl::ascii_isgraph(c) && c != '"' && c != '\\'; };
  if (proxy.host.empty() || std::ranges::count(url, '@') > 1 ||
      !std::ranges::all_of(url, is_plain)) {
    return "it is not http://[USER:PASSWORD@]HOST:PORT";
  }
  const bool is_number = std::ranges::all_of(proxy.port, absl::ascii_isdigit);
  if (!is_number || !absl::SimpleAtoi(proxy.port, &port) || port < 1 || port > 65535) {
    return "it does not end with a port between 1 and 65535";
  }
  return "";
}

// The variable of the user whose proxy UseOneProxy has copied to https_proxy, and to grpc_proxy.
std::string& OriginOf(const char* target) {
  static std::string of_grpc;
  static std::string of_https;
  return target == std::string_view(kOfGrpc) ? of_grpc : of_https;
}

// Returns the proxy of the first variable that is set.
std::optional<Proxy> FirstSet(std::initializer_list<const char*> variables) {
  const auto first = std::ranges::find_if(variables, IsSet);
  auto proxy = first == variables.end() ? std::nullopt : Parse(*first);
  if (!proxy || (*first != std::string_view(kOfGrpc) && *first != std::string_view(kOfHttps))) {
    return proxy;
  }
  if (const std::string& origin = OriginOf(*first); !origin.empty()) proxy->variable = origin;
  return proxy;
}

// Adds this machine to no_proxy. Returns whether every host is in it: "*".
bool ExcludeThisMachine() {
  const char* variable = IsSet("no_proxy") ? "no_proxy" : "NO_PROXY";
  const std::string value = ValueOf(variable);
  if (IsSet("no_proxy") && value.empty()) return false;
  std::vector<std::string> hosts;
  for (const absl::string_view host : absl::StrSplit(value, ',', absl::SkipWhitespace())) {
    hosts.emplace_back(absl::StripAsciiWhitespace(host));
  }
  if (hosts == std::vector<std::string>{"*"}) return true;
  hosts.insert(hosts.end(), {"localhost", "127.0.0.1", "::1"});
  Set("no_proxy", absl::StrJoin(hosts, ","));
  return false;
}

// Returns whether the end of a host is in the list of exceptions, as gRPC decides.
bool IsExempt(const std::string& host) {
  const std::string list = ValueOf(IsSet("no_grpc_proxy") ? "no_grpc_proxy" : "no_proxy");
  for (const absl::string_view entry : absl::StrSplit(list, ',', absl::SkipWhitespace())) {
    if (absl::EndsWithIgnoreCase(host, absl::StripAsciiWhitespace(entry))) return true;
  }
  return false;
}

// Returns the part of a proxy's URL before "@", with %XX decoded.
std::string CredentialsIn(absl::string_view url) {
  if (const size_t scheme = url.find("://"); scheme != absl::string_view::npos) {
    url.remove_prefix(scheme + 3);
  }
  const size_t at = url.rfind('@');
  if (at == absl::string_view::npos) return "";
  std::string decoded;
  for (size_t i = 0; i < at; ++i) {
    const bool escaped = url[i] == '%' && i + 2 < at && absl::ascii_isxdigit(url[i + 1]) &&
                         absl::ascii_isxdigit(url[i + 2]);
    absl::StrAppend(
        &decoded, escaped ? absl::HexStringToBytes(url.substr(i + 1, 2)) : std::string(1, url[i]));
    if (escaped) i += 2;
  }
  return decoded;
}

// Sets `target` to the URL of the proxy, or to nothing if it has a fault, which is returned.
std::string Choose(const char* target, const std::optional<Proxy>& proxy) {
  const std::string fault = proxy ? FaultOf(*proxy) : "";
  const std::string url = proxy && fault.empty() ? ValueOf(proxy->variable.c_str()) : "";
  OriginOf(target) = url.empty() ? "" : proxy->variable;
  const bool has_scheme = absl::StartsWithIgnoreCase(url, kScheme);
  Set(target,
      url.empty() ? "" : absl::StrCat(kScheme, url.substr(has_scheme ? sizeof(kScheme) - 1 : 0)));
  return fault.empty() ? ""
                       : absl::StrCat("the proxy in ", proxy->variable, " is not used: ", fault);
}

}  // namespace

std::optional<Proxy> GrpcProxy() { return FirstSet({kOfGrpc, kOfHttps, "http_proxy"}); }

std::optional<ProxyOfHost> GrpcProxyOf(const std::string& host) {
  const auto proxy = GrpcProxy();
  if (!proxy || proxy->host.empty() || IsExempt(host)) return std::nullopt;
  return ProxyOfHost{*proxy, CredentialsIn(ValueOf(IsSet(kOfGrpc)    ? kOfGrpc
                                                   : IsSet(kOfHttps) ? kOfHttps
                                                                     : "http_proxy"))};
}

std::optional<Proxy> CurlProxy() {
  return FirstSet({kOfHttps, "HTTPS_PROXY", "all_proxy", "ALL_PROXY"});
}

std::string UseOneProxy() {
  std::optional<Proxy> proxy;
  bool named = IsSet(kOfGrpc);
  for (const char* variable : kShared) {
    if (!IsSet(variable)) continue;
    named = true;
    proxy = Parse(variable);
    const bool is_https = absl::EqualsIgnoreCase(variable, kOfHttps);
    if (!is_https && proxy && !FaultOf(*proxy).empty()) {
      proxy.reset();
      continue;
    }
    break;
  }
  if (!named) return "";
  const bool own = IsSet(kOfGrpc);
  if (ExcludeThisMachine()) {
    Set(kOfGrpc, "");
    Set(kOfHttps, "");
    return "";
  }
  const std::string fault = Choose(kOfGrpc, own ? Parse(kOfGrpc) : proxy);
  const std::string of_https = Choose(kOfHttps, proxy);
  return fault.empty() ? of_https : fault;
}

}  // namespace muster
