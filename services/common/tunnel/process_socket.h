// Connections within one process.
#ifndef MUSTER_SERVICES_COMMON_TUNNEL_PROCESS_SOCKET_H_
#define MUSTER_SERVICES_COMMON_TUNNEL_PROCESS_SOCKET_H_

#include <string>

#include "absl/status/statusor.h"
#include "services/common/base/unique_fd.h"

namespace muster {

// A local socket with an abstract name (unix(7)), for connections of this process to itself. Any
// process of the machine can connect to the name.
class ProcessSocket {
 public:
  // Listens at a name of at most 107 bytes, without blocking. The errors of ErrnoError.
  static absl::StatusOr<UniqueFd> Listen(const std::string& name);

  // Returns whether this process has opened the other end of an accepted connection.
  static bool IsOwn(int connection);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TUNNEL_PROCESS_SOCKET_H_
