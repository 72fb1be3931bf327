// Listening sockets that outlive the process that accepts on them.
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

// Named TCP sockets in the listening state. While their user is away a connection waits in the
// kernel's queue instead of being refused. Not thread-safe.
class ListeningSockets {
 public:
  struct Socket {
    int fd = -1;  // stays owned by ListeningSockets
    HostPort address;
  };

  // The socket of that name, opened now if there is none. The host is an address, not a name. If
  // the name is there already its socket is given again; FAILED_PRECONDITION (NAME_TAKEN) if that
  // one has another address than the one asked for (port 0 means any). FAILED_PRECONDITION
  // (ADDRESS_IN_USE) if another program has it; RESOURCE_EXHAUSTED (TOO_MANY_SOCKETS) beyond 4096.
  absl::StatusOr<Socket> Listen(const std::string& name, const HostPort& address);

  // Closes the socket of that name; false if there is none.
  bool Release(const std::string& name);

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
