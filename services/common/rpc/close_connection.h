// Ends connections that gRPC holds.
#ifndef MUSTER_SERVICES_COMMON_RPC_CLOSE_CONNECTION_H_
#define MUSTER_SERVICES_COMMON_RPC_CLOSE_CONNECTION_H_

#include <cstddef>
#include <string_view>

namespace muster {

// Shuts down the TCP connection of this process with the peer, "ipv4:192.0.2.1:4711" as
// grpc::ServerContext::peer returns it, and the local port. gRPC then ends its calls. Returns false
// if there is none. gRPC has no such function, so this looks at every file descriptor of the
// process: some milliseconds for thousands of them.
bool CloseConnection(std::string_view peer, int local_port);

struct ConnectionLimits {
  size_t of_address = 0;
  size_t in_all = 0;
};

// Shuts down connections with the local port until the rest is within the limits, first those of
// the address with most connections. Returns how many.
size_t CloseExcessConnections(int local_port, const ConnectionLimits& limits);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CLOSE_CONNECTION_H_
