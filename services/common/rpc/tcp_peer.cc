#include "services/common/rpc/tcp_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "absl/strings/numbers.h"
#include "services/common/base/strings.h"

namespace muster {

TcpPeer ParseTcpPeer(std::string_view grpc_peer) {
  const size_t scheme = grpc_peer.find(':');
  const size_t colon = grpc_peer.rfind(':');
  if (scheme == std::string_view::npos || colon <= scheme) return {};
  std::string host(grpc_peer.substr(scheme + 1, colon - scheme - 1));
  const bool v4 = grpc_peer.substr(0, scheme) == "ipv4";
  if (!v4) {
    for (const std::string_view bracket : {"[", "]", "%5B", "%5D"}) {
      if (const size_t at = host.find(bracket); at != std::string::npos) {
        host.erase(at, bracket.size());
      }
    }
    host = host.substr(0, host.find('%'));  // the zone of a link-local address
  }
  TcpPeer peer;
  uint32_t port = 0;
  in_addr v4_address;
  if (!absl::SimpleAtoi(ToAbsl(grpc_peer.substr(colon + 1)), &port) || port > 65535) return {};
  if (v4 && inet_pton(AF_INET, host.c_str(), &v4_address) == 1) {
    peer.address[10] = peer.address[11] = 0xff;
    std::memcpy(peer.address.data() + 12, &v4_address, 4);
  } else if (v4 || inet_pton(AF_INET6, host.c_str(), peer.address.data()) != 1) {
    return {};
  }
  peer.port = static_cast<uint16_t>(port);
  return peer;
}

}  // namespace muster
