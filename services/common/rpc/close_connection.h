// Ends connections that gRPC holds.
#ifndef MUSTER_SERVICES_COMMON_RPC_CLOSE_CONNECTION_H_
#define MUSTER_SERVICES_COMMON_RPC_CLOSE_CONNECTION_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "services/common/rpc/tcp_peer.h"

namespace muster {

struct ConnectionLimits {
  size_t of_address = 0;
  size_t in_all = 0;
};

// The connections of this process with some local ports. gRPC has no functions to list or close
// them, so this looks at every file descriptor of the process: some milliseconds for thousands of
// them. Not thread-safe.
class OpenConnections {
 public:
  explicit OpenConnections(absl::Span<const int> local_ports);

  // Shuts down the connection with the peer, "ipv4:192.0.2.1:4711" as grpc::ServerContext::peer
  // returns it, and the local port. gRPC then ends its calls. Returns false if there is none.
  bool Close(std::string_view peer, int local_port);

  // Shuts down connections with the local port until the rest is within the limits, first those of
  // the address with most connections. Returns how many.
  size_t CloseExcess(int local_port, const ConnectionLimits& limits);

 private:
  struct Connection {
    int fd = -1;  // of gRPC, which may close it at any time
    TcpPeer peer;
  };

  static bool ShutDown(const Connection& connection);

  absl::flat_hash_map<int, std::vector<Connection>> by_port_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CLOSE_CONNECTION_H_
