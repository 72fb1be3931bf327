// A local endpoint whose connections are tunnels over WebSocket to a listener of the fleet.
#ifndef MUSTER_SERVICES_COMMON_TUNNEL_TUNNEL_ENDPOINT_H_
#define MUSTER_SERVICES_COMMON_TUNNEL_TUNNEL_ENDPOINT_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/text_values.h"

namespace muster {

// Connections of one endpoint at the same time; more are closed.
inline constexpr size_t kMaxTunnelConnections = 256;
// Bytes that a connection holds of each direction.
inline constexpr size_t kTunnelBuffer = size_t{32} << 10;

struct TunnelProxy {
  std::string host;
  std::string port;
  std::string credentials;  // "user:password"; may be empty
};

struct TunnelOptions {
  HostPort gateway;                  // its status listener
  std::string path;                  // "/tunnel/relay"
  std::optional<TunnelProxy> proxy;  // that is asked by CONNECT
  std::string fleet_root_pem;        // to verify the gateway; may be empty
  // For the connection to proxy and gateway with all handshakes. gRPC waits for 20 s.
  absl::Duration establish_within = absl::Seconds(15);
  // A gateway that does not answer a ping for half of this is lost.
  absl::Duration idle = absl::Seconds(60);
};

// A socket with an abstract name in the namespace of Unix sockets, so that no file is left behind.
// It serves this process alone. Each connection to it becomes one WebSocket with the subprotocol
// muster.tunnel.v1: TCP, CONNECT if there is a proxy, TLS, upgrade, then binary messages with the
// bytes of the connection. One thread handles all connections. A connection holds kTunnelBuffer of
// each direction, and reads on only when the other side has taken that.
//
// The outer TLS is not the protection of the tunnel: the caller runs mutual TLS inside. It is
// verified with the root of the fleet, or with the roots of this machine and the host name, and the
// status says which (tunnel_status.h). An unverified one is used, because a proxy that inspects TLS
// presents its own certificate: it can drop, delay and count the bytes, and cannot read or change
// them.
//
// Thread-safe.
class TunnelEndpoint {
 public:
  // Fails with INTERNAL if there is no socket.
  static absl::StatusOr<std::unique_ptr<TunnelEndpoint>> Start(TunnelOptions options);

  // Ends all connections.
  virtual ~TunnelEndpoint() = default;

  // Returns the target for gRPC: "unix-abstract:muster-tunnel-...".
  virtual const std::string& target() const = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TUNNEL_TUNNEL_ENDPOINT_H_
