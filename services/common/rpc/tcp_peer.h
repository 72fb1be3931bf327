// The peer of a TCP connection, as gRPC and the kernel name it.
#ifndef MUSTER_SERVICES_COMMON_RPC_TCP_PEER_H_
#define MUSTER_SERVICES_COMMON_RPC_TCP_PEER_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace muster {

// The address and port of the peer of a TCP connection. Port 0: none.
struct TcpPeer {
  std::array<uint8_t, 16> address = {};  // IPv4 as ::ffff:a.b.c.d
  uint16_t port = 0;

  bool operator==(const TcpPeer&) const = default;
};

// Parses what grpc::ServerContext::peer returns: "ipv4:10.0.0.1:4711" or "ipv6:[2001:db8::1]:4711"
// (also with %5B and %5D). Any other text has port 0.
TcpPeer ParseTcpPeer(std::string_view grpc_peer);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_TCP_PEER_H_
