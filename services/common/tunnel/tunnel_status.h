// The status of the tunnels of this process.
#ifndef MUSTER_SERVICES_COMMON_TUNNEL_TUNNEL_STATUS_H_
#define MUSTER_SERVICES_COMMON_TUNNEL_TUNNEL_STATUS_H_

#include <optional>
#include <string>
#include <string_view>

namespace muster {

// The begin of the names of local endpoints: gRPC's errors contain them.
inline constexpr std::string_view kTunnelName = "muster-tunnel-";

struct TunnelStatus {
  std::string address;  // "wss://gateway.example:8002"
  std::string way;      // "through the proxy proxy.example:3128", or "directly"
  std::string trust;    // of the last connection: "TLS verified by the root of the fleet"
  std::string fault;    // why the last connection failed; empty if it did not
};

// Keeps the status of the tunnel with this name. An empty status removes it. Thread-safe.
void SetTunnelStatus(const std::string& name, std::optional<TunnelStatus> status);

// Returns the status of the tunnel whose name `text` contains, such as an error of gRPC.
// Thread-safe.
std::optional<TunnelStatus> FindTunnelStatus(std::string_view text);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TUNNEL_TUNNEL_STATUS_H_
