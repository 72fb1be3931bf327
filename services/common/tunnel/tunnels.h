// The tunnels of this process.
#ifndef MUSTER_SERVICES_COMMON_TUNNEL_TUNNELS_H_
#define MUSTER_SERVICES_COMMON_TUNNEL_TUNNELS_H_

#include <cstddef>
#include <string>

#include "services/common/base/text_values.h"

namespace muster {

// Gateways and paths to which one process has tunnels.
inline constexpr size_t kMaxTunnels = 16;

// The listeners to which a gateway connects tunnels.
enum class TunnelTo { kRelay, kJoin };

// Returns the target by which gRPC reaches a listener through a gateway, "wss://host" and a port.
// The first call for a gateway and a listener opens a local endpoint (tunnel_endpoint.h), which
// stays until the process ends, with the proxy that the environment names for this host. Without an
// endpoint connections to the target fail with TUNNEL_FAILED and the reason. Thread-safe.
std::string TunnelTarget(const HostPort& gateway, TunnelTo to);

// Sets the root of the fleet, with which tunnels that are opened later verify their gateway.
// Thread-safe.
void SetTunnelRoot(const std::string& fleet_root_pem);

// Returns "websocket wss://gateway.example:8002 through the proxy proxy.example:3128, TLS verified
// by the root of the fleet" for the tunnel to the relay, as its last connection was; empty for
// another address, and before a connection was established. Thread-safe.
std::string DescribeTunnel(const HostPort& gateway);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TUNNEL_TUNNELS_H_
