#include "services/common/rpc/connection_error.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"
#include "services/common/errors/rpc.h"
#include "services/common/rpc/proxy.h"
#include "services/common/tunnel/tunnel_status.h"

namespace muster {
namespace {

constexpr absl::string_view kCannotConnect = "cannot connect to ";
constexpr absl::string_view kCannotFind = "cannot find the address of ";
constexpr absl::string_view kKeepaliveTimeout = "keepalive watchdog timeout";
// Texts of OpenSSL and of gRPC: the alert of a server without HTTP/2, a server that ignores ALPN,
// and one of TLS 1.2.
constexpr std::array<absl::string_view, 4> kHttp2Faults = {
    "no application protocol", "missing selected ALPN property", "alert protocol version",
    "unsupported protocol"};
constexpr std::string_view kTunnelFailed = "TUNNEL_FAILED";
constexpr std::string_view kHttp2Refused = "HTTP2_REFUSED";
constexpr std::string_view kUnreachable = "UNREACHABLE";
constexpr std::string_view kProxyFailed = "PROXY_FAILED";
constexpr std::string_view kCertificateRefused = "SERVER_CERTIFICATE_REFUSED";

// Returns the text after `words`, or nothing if `text` does not contain them.
std::optional<absl::string_view> After(absl::string_view text, absl::string_view words) {
  const size_t found = text.find(words);
  if (found == absl::string_view::npos) return std::nullopt;
  return text.substr(found + words.size());
}

bool IsAddress(const std::string& host) {
  return absl::StrContains(host, ':') ||
         std::ranges::all_of(host, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

// Returns true if `address`, with a number as its host, may be that of the proxy.
bool MayBe(const Proxy& proxy, absl::string_view address) {
  return address == proxy.Address() ||
         (!IsAddress(proxy.host) && absl::EndsWith(address, ":" + proxy.port));
}

// Returns why gRPC refused a server's certificate, or nothing if it did not.
std::optional<std::string> CertificateFault(absl::string_view cause) {
  if (const auto why = After(cause, "Custom verification check failed with error: ")) {
    const auto text = After(*why, "UNAUTHENTICATED: ");
    return std::string(text ? *text : *why);
  }
  if (!absl::StrContains(cause, "certificate verify failed")) return std::nullopt;
  return "it is of another fleet, or not valid now";
}

// Returns whether a handshake has ended because the other side does not speak HTTP/2 over TLS 1.3.
bool IsHttp2Fault(absl::string_view cause) {
  return std::ranges::any_of(
      kHttp2Faults, [cause](absl::string_view fault) { return absl::StrContains(cause, fault); });
}

}  // namespace

absl::Status ConnectionErrorOf(const std::string& message) {
  if (absl::StrContains(message, kKeepaliveTimeout)) {
    return errors::Unreachable("the connection was lost: the other side has stopped to answer");
  }
  if (const auto target = After(message, "DNS resolution failed for ")) {
    // "HOST:PORT: C-ares status is not ARES_SUCCESS qtype=A name=HOST is_balancer=0: WHY"
    const size_t end = target->find(": ");
    if (end == absl::string_view::npos) return errors::Unreachable(message);  // of a peer
    const absl::string_view address = target->substr(0, end);
    const absl::string_view why = target->substr(target->rfind(": ") + 2);
    if (why.empty()) return errors::Unreachable(message);
    const auto proxy = GrpcProxy();
    if (proxy && address == proxy->Address()) {
      return errors::ProxyFailed(
          absl::StrCat("cannot find the address of the proxy ", address, ": ", why),
          proxy->variable);
    }
    return errors::Unreachable(absl::StrCat(kCannotFind, address, ": ", why));
  }
  const auto last = After(message, "last error: ");
  if (!last) return errors::Unreachable(message);
  absl::string_view cause = *last;
  for (const absl::string_view code : {"UNKNOWN: ", "UNAVAILABLE: "}) {
    absl::ConsumePrefix(&cause, code);
  }
  for (const absl::string_view scheme : {"ipv4:", "ipv6:"}) absl::ConsumePrefix(&cause, scheme);
  const std::string text = absl::StrReplaceAll(
      cause, {{": Failed to connect to remote host: ", ": "}, {"%5B", "["}, {"%5D", "]"}});
  const auto tunnel = FindTunnelStatus(text);
  const std::string address = tunnel ? tunnel->address : text.substr(0, text.find(": "));
  if (const auto fault = CertificateFault(cause)) {
    return errors::ServerCertificateRefused(address, *fault);
  }
  if (tunnel) {
    return errors::TunnelFailed(address, tunnel->fault.empty() ? "it was closed" : tunnel->fault);
  }
  if (IsHttp2Fault(cause)) return errors::Http2Refused(address);
  if (const auto proxy = GrpcProxy()) {
    const absl::string_view through = "cannot connect through the proxy ";
    if (const auto code = After(text, "HTTP proxy returned response code ")) {
      return errors::ProxyFailed(
          absl::StrCat(through, proxy->Address(), ": it answers with HTTP status ", *code),
          proxy->variable);
    }
    if (MayBe(*proxy, address)) {
      return errors::ProxyFailed(absl::StrCat(through, text), proxy->variable);
    }
  }
  if (address.size() + 2 >= text.size()) return errors::Unreachable(message);  // of a peer
  return errors::Unreachable(absl::StrCat(kCannotConnect, text));
}

bool IsUnconnected(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == kProxyFailed || reason == kCertificateRefused || reason == kTunnelFailed ||
         reason == kHttp2Refused ||
         (reason == kUnreachable && (absl::StartsWith(status.message(), kCannotConnect) ||
                                     absl::StartsWith(status.message(), kCannotFind)));
}

bool IsConnectionError(std::string_view reason) {
  return reason == kUnreachable || reason == kProxyFailed || reason == kCertificateRefused ||
         reason == kTunnelFailed || reason == kHttp2Refused ||
         reason == "CONNECTION_FAILED";  // of services/client
}

bool AllowsTunnel(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == kHttp2Refused || reason == kCertificateRefused ||
         (reason == kProxyFailed && absl::EndsWith(status.message(), "HTTP status 403"));
}

bool IsRefusedByThisMachine(std::string_view message) {
  absl::string_view address = ToAbsl(message);
  if (!absl::ConsumePrefix(&address, kCannotConnect)) return false;
  const bool local = absl::StartsWith(address, "127.") || absl::StartsWith(address, "[::1]") ||
                     absl::StartsWith(address, "localhost:");
  return local && absl::EndsWith(address, ": Connection refused");
}

}  // namespace muster
