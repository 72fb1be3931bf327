// Listening sockets that outlive the process that accepts their connections.
#ifndef MUSTER_CLI_SUPERVISOR_LISTENING_SOCKETS_H_
#define MUSTER_CLI_SUPERVISOR_LISTENING_SOCKETS_H_

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/base/text_values.h"
#include "services/common/base/unique_fd.h"

namespace muster::supervisor {

// Named TCP sockets in the listening state. While no process accepts, connections wait in the
// kernel's queue. Not thread-safe.
class ListeningSockets {
 public:
  struct Socket {
    int fd = -1;  // owned by ListeningSockets
    HostPort address;
  };

  // Returns the socket with this name, and opens it if it does not exist. The host is an IP
  // address. Returns FAILED_PRECONDITION (NAME_TAKEN) if the name has a socket with another address
  // (port 0 means any), FAILED_PRECONDITION (ADDRESS_IN_USE) if another program has the address,
  // RESOURCE_EXHAUSTED (TOO_MANY_SOCKETS) beyond 4096.
  absl::StatusOr<Socket> Listen(const std::string& name, const HostPort& address);

  // Closes the socket with this name. Returns false if it does not exist.
  bool Release(const std::string& name);

  bool Has(const std::string& name) const { return sockets_.contains(name); }

  size_t size() const { return sockets_.size(); }

 private:
  struct Held {
    UniqueFd fd;
    HostPort address;
  };

  std::map<std::string, Held> sockets_;
};

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_LISTENING_SOCKETS_H_
