#include "services/common/rpc/proxy.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace muster {
namespace {

constexpr char kOfGrpc[] = "grpc_proxy";
constexpr std::array kOthers = {"https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy",
                                "ALL_PROXY"};
constexpr char kDefaultPort[] = "80";

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
  text.erase(0, text.find('@') + 1);
  const size_t colon = text.rfind(':');
  const bool has_port = colon != std::string::npos && text.back() != ']';
  return Proxy{variable, text.substr(0, has_port ? colon : text.size()),
               has_port ? text.substr(colon + 1) : kDefaultPort};
}

std::optional<Proxy> FirstOfOthers() {
  for (const char* variable : kOthers) {
    if (auto proxy = Parse(variable)) return proxy;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Proxy> ProxyOfEnvironment() {
  const auto of_grpc = Parse(kOfGrpc);
  const auto other = FirstOfOthers();
  // ShareProxyWithGrpc may have copied it.
  const bool copied = of_grpc && other && of_grpc->Address() == other->Address();
  return of_grpc && !copied ? of_grpc : other;
}

std::string ShareProxyWithGrpc() {
  if (const std::string no_proxy = ValueOf("NO_PROXY"); !no_proxy.empty() &&
                                                        std::getenv("no_proxy") == nullptr &&
                                                        std::getenv("no_grpc_proxy") == nullptr) {
    Set("no_grpc_proxy", no_proxy);
  }
  const bool chosen = std::getenv(kOfGrpc) != nullptr;
  const auto proxy = chosen ? Parse(kOfGrpc) : FirstOfOthers();
  if (!proxy) return "";
  const std::string url = ValueOf(proxy->variable.c_str());
  int port = 0;
  std::string fault;
  if (absl::StrContains(url, "://") && !absl::StartsWith(url, "http://")) {
    fault = "it does not begin with http://";
  } else if (!absl::SimpleAtoi(proxy->port, &port) || port < 1 || port > 65535) {
    fault = "its port is not between 1 and 65535";
  }
  Set(kOfGrpc, !fault.empty() ? "" : absl::StrCat("http://", absl::StripPrefix(url, "http://")));
  return fault.empty() ? ""
                       : absl::StrCat("gRPC uses no proxy, as it cannot use that in ",
                                      proxy->variable, ": ", fault);
}

}  // namespace muster
