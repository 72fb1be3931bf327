// A connection that is made only to see which of its steps fails.
#ifndef MUSTER_SERVICES_AGENT_PREFLIGHT_TLS_PROBE_H_
#define MUSTER_SERVICES_AGENT_PREFLIGHT_TLS_PROBE_H_

#include <optional>
#include <stop_token>
#include <string>

#include "services/client/client.h"

namespace muster {

// Where to connect, as whom, and whom to expect there.
struct TlsProbe {
  std::string address;      // "host:port"
  std::string trusted_pem;  // what vouches for the server
  std::string chain_pem;    // ours, leaf first
  std::string key_pem;
  // The fleet whose aggregator or relay the server has to be, as gRPC wants it (TLS 1.3, ALPN h2).
  // Empty: a run's listener, known by its host name.
  std::string fleet;
};

// Looks up the name, connects, and shakes hands; the first that fails, or nothing. Blocks for up to
// 10 s a step; nothing as well if `stop` came first. Thread-safe.
std::optional<client::Fault> ProbeTls(const TlsProbe& probe, const std::stop_token& stop);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_PREFLIGHT_TLS_PROBE_H_
