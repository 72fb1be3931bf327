// A test connection that finds the step that fails.
#ifndef MUSTER_SERVICES_AGENT_PREFLIGHT_TLS_PROBE_H_
#define MUSTER_SERVICES_AGENT_PREFLIGHT_TLS_PROBE_H_

#include <optional>
#include <stop_token>
#include <string>

#include "services/client/client.h"

namespace muster {

// The address, the identities and the trusted CA of the connection.
struct TlsProbe {
  std::string address;      // "host:port"
  std::string trusted_pem;  // the CA of the server
  std::string chain_pem;    // the client's chain, leaf first
  std::string key_pem;
  // The fleet whose aggregator or relay the server must be, as gRPC requires it (TLS 1.3, ALPN h2).
  // Empty: a run's listener, identified by its host name.
  std::string fleet;
};

// Resolves the name, connects, and performs the handshake; returns the first fault, or nothing.
// Blocks for up to 10 s per step; also returns nothing after `stop`. Thread-safe.
std::optional<client::Fault> ProbeTls(const TlsProbe& probe, const std::stop_token& stop);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_PREFLIGHT_TLS_PROBE_H_
