#include "services/agent/preflight/tls_probe.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "services/agent/preflight/lookup.h"
#include "services/common/base/clock.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/text_values.h"
#include "services/common/base/unique_fd.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"

namespace muster {
namespace {

using Check = client::Fault::Check;

constexpr absl::Duration kLimit = absl::Seconds(10);  // of each step
constexpr absl::Duration kSlice = absl::Milliseconds(200);
// A server rejects a client certificate after the handshake. A gRPC server sends first if it
// accepts it; the legacy listener waits for the client.
constexpr absl::Duration kGrpcRefusalLimit = absl::Seconds(2);
constexpr absl::Duration kListenerRefusalLimit = absl::Milliseconds(300);

template <typename T, void (*kFree)(T*)>
struct Freer {
  void operator()(T* object) const { kFree(object); }
};
using Context = std::unique_ptr<SSL_CTX, Freer<SSL_CTX, SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Freer<SSL, SSL_free>>;

absl::Duration Now() { return SystemClock().MonotonicNow(); }

// Waits until the socket is ready. Fails with DEADLINE_EXCEEDED or CANCELLED.
absl::Status Await(int fd, short events, absl::Duration end, const std::stop_token& stop) {
  while (true) {
    if (stop.stop_requested()) return absl::CancelledError("the agent is stopping");
    if (Now() >= end) return absl::DeadlineExceededError("no response");
    pollfd waited{fd, events, 0};
    const int slice = static_cast<int>(absl::ToInt64Milliseconds(kSlice));
    if (::poll(&waited, 1, slice) > 0) return absl::OkStatus();
  }
}

absl::StatusOr<UniqueFd> ConnectOne(const addrinfo& address, const std::stop_token& stop) {
  UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return absl::UnavailableError(std::strerror(errno));
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return absl::UnavailableError(std::strerror(errno));
  RETURN_IF_ERROR(Await(fd.get(), POLLOUT, Now() + kLimit, stop));
  int fault = 0;
  socklen_t size = sizeof(fault);
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &fault, &size);
  if (fault != 0) return absl::UnavailableError(std::strerror(fault));
  return fd;
}

// Connects to the first address that answers; returns the last error.
absl::StatusOr<UniqueFd> Connect(const addrinfo* list, const std::stop_token& stop) {
  absl::StatusOr<UniqueFd> connection = absl::UnavailableError("the name resolves to no address");
  for (; list != nullptr && !connection.ok() && !stop.stop_requested(); list = list->ai_next) {
    connection = ConnectOne(*list, stop);
  }
  return connection;
}

// Returns OpenSSL's last error.
std::string TlsReason() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "the connection was closed" : reason;
}

// Runs one operation of a session that may wait for the socket. Fails with DEADLINE_EXCEEDED,
// CANCELLED, or UNAVAILABLE with OpenSSL's reason.
template <typename Operation>
absl::Status Drive(SSL* ssl, Operation operation, absl::Duration end, const std::stop_token& stop) {
  while (true) {
    ERR_clear_error();
    const int result = operation();
    if (result > 0) return absl::OkStatus();
    const int fault = SSL_get_error(ssl, result);
    if (fault != SSL_ERROR_WANT_READ && fault != SSL_ERROR_WANT_WRITE) {
      return absl::UnavailableError(TlsReason());
    }
    const short events = fault == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    RETURN_IF_ERROR(Await(SSL_get_fd(ssl), events, end, stop));
  }
}

absl::StatusOr<Context> MakeContext(const TlsProbe& probe) {
  const auto trusted = ParseChain(probe.trusted_pem);
  const auto chain = ParseChain(probe.chain_pem);
  const auto key = PrivateKey::FromPem(probe.key_pem);
  for (const absl::Status& status : {trusted.status(), chain.status(), key.status()}) {
    if (!status.ok()) return status;
  }
  Context context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_min_proto_version(context.get(),
                                probe.fleet.empty() ? TLS1_2_VERSION : TLS1_3_VERSION);
  for (const Certificate& root : *trusted) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), root.get());
  }
  SSL_CTX_use_certificate(context.get(), chain->front().get());
  SSL_CTX_use_PrivateKey(context.get(), key->get());
  for (size_t i = 1; i < chain->size() && !probe.fleet.empty(); ++i) {
    SSL_CTX_add1_chain_cert(context.get(), (*chain)[i].get());
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return context;
}

// Checks the identity of the server after its chain was verified; returns the fault.
std::string WrongServer(SSL* ssl, const std::string& fleet) {
  X509* shown = SSL_get1_peer_certificate(ssl);
  if (shown == nullptr) return "the server sent no certificate";
  const auto uri = Certificate::Adopt(shown).Uri();
  if (!uri.ok()) return std::string(uri.status().message());
  const auto identity = ParseIdentity(*uri, fleet);
  if (!identity.ok()) return std::string(identity.status().message());
  const auto* service = std::get_if<ServiceIdentity>(&identity->name);
  const bool right = service != nullptr && (service->role == ServiceRole::kAggregator ||
                                            service->role == ServiceRole::kRelay);
  return right ? "" : absl::StrCat("the server is ", *uri, ", not an aggregator or a relay");
}

client::Fault Failed(const TlsProbe& probe, Check check, std::string_view what,
                     std::string_view next_step) {
  return {check, probe.address, std::string(what), std::string(next_step)};
}

// Returns the fault of a server certificate that was not accepted.
client::Fault Untrusted(const TlsProbe& probe, long verdict) {
  const std::string why =
      absl::StrCat("the server's certificate is refused: ", X509_verify_cert_error_string(verdict));
  const std::string clock =
      absl::StrCat("; this machine's clock shows ", absl::FormatTime(absl::Now()));
  if (verdict == X509_V_ERR_CERT_NOT_YET_VALID) {
    return Failed(probe, Check::kClock, why + clock, "Set this machine's clock.");
  }
  if (verdict == X509_V_ERR_CERT_HAS_EXPIRED) {
    return Failed(probe, Check::kTls, why + clock,
                  "Set this machine's clock; if it is right, renew the server's certificate.");
  }
  return Failed(probe, Check::kTls, why,
                "Check that the address is the fleet's; if it is, export the credential again.");
}

std::optional<client::Fault> ShakeHands(const TlsProbe& probe, const std::string& host, int fd,
                                        const std::stop_token& stop) {
  const auto context = MakeContext(probe);
  if (!context.ok()) {
    return Failed(probe, Check::kTls, ToStd(context.status().message()),
                  "Export the credential again.");
  }
  const Session session(SSL_new(context->get()));
  SSL* ssl = session.get();
  SSL_set_fd(ssl, fd);
  if (probe.fleet.empty()) {
    X509_VERIFY_PARAM* wanted = SSL_get0_param(ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) != 1) {
      X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), 0);
      SSL_set_tlsext_host_name(ssl, host.c_str());
    }
  } else {
    constexpr unsigned char kH2[] = {2, 'h', '2'};
    SSL_set_alpn_protos(ssl, kH2, sizeof(kH2));
  }
  absl::Status status = Drive(ssl, [ssl] { return SSL_connect(ssl); }, Now() + kLimit, stop);
  if (absl::IsCancelled(status)) return std::nullopt;
  if (const long verdict = SSL_get_verify_result(ssl); !status.ok() && verdict != X509_V_OK) {
    return Untrusted(probe, verdict);
  }
  if (!status.ok()) {
    return Failed(
        probe, Check::kTls, absl::StrCat("the TLS handshake failed: ", status.message()),
        "Check that this is the address of the service, and that no other program listens there.");
  }
  if (!probe.fleet.empty()) {
    if (const std::string wrong = WrongServer(ssl, probe.fleet); !wrong.empty()) {
      return Failed(probe, Check::kTls, wrong, "Correct the address.");
    }
  }
  char first = 0;
  const absl::Duration end =
      Now() + (probe.fleet.empty() ? kListenerRefusalLimit : kGrpcRefusalLimit);
  status = Drive(ssl, [&] { return SSL_peek(ssl, &first, 1); }, end, stop);
  if (status.code() != absl::StatusCode::kUnavailable) return std::nullopt;
  return Failed(probe, Check::kTls,
                absl::StrCat("the server rejects the client certificate: ", status.message()),
                "Export the credential again; check this machine's clock and the server's.");
}

}  // namespace

std::optional<client::Fault> ProbeTls(const TlsProbe& probe, const std::stop_token& stop) {
  const auto place = ParseHostPort(probe.address);
  if (!place || place->port == 0) {
    return Failed(probe, Check::kNameResolution, "invalid address", "Write it as host:port.");
  }
  const auto addresses = LookUp(place->host, place->port, kLimit, stop);
  if (stop.stop_requested()) return std::nullopt;
  if (!addresses.ok()) {
    return Failed(probe, Check::kNameResolution,
                  absl::StrCat("the name ", place->host,
                               " cannot be resolved: ", addresses.status().message()),
                  "Correct the address, or this machine's name servers (/etc/resolv.conf).");
  }
  const auto connection = Connect(addresses->get(), stop);
  if (stop.stop_requested()) return std::nullopt;
  if (!connection.ok()) {
    return Failed(probe, Check::kConnection,
                  absl::StrCat("cannot connect: ", connection.status().message()),
                  "Check that the service runs there, and the routes and firewalls in between.");
  }
  return ShakeHands(probe, place->host, connection->get(), stop);
}

}  // namespace muster
