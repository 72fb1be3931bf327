#include "cli/supervisor/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/cli.h"

namespace muster::supervisor {
namespace {

constexpr size_t kMaxSockets = 4096;  // the most simultaneous runs with legacy clients
constexpr int kBacklog = 1024;        // connections that wait while the gateway restarts

using AddressList = std::unique_ptr<struct addrinfo, decltype(&::freeaddrinfo)>;

absl::StatusOr<AddressList> Resolve(const HostPort& address) {
  struct addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  struct addrinfo* found = nullptr;
  const int fault =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (fault != 0) {
    return errors::InvalidListenAddress(address.ToString(), ::gai_strerror(fault));
  }
  return AddressList(found, &::freeaddrinfo);
}

int BoundPort(int fd) {
  struct sockaddr_storage bound = {};
  socklen_t size = sizeof(bound);
  if (::getsockname(fd, reinterpret_cast<struct sockaddr*>(&bound), &size) != 0) return 0;
  return ntohs(bound.ss_family == AF_INET6
                   ? reinterpret_cast<struct sockaddr_in6*>(&bound)->sin6_port
                   : reinterpret_cast<struct sockaddr_in*>(&bound)->sin_port);
}

absl::StatusOr<UniqueFd> Open(const HostPort& address) {
  ASSIGN_OR_RETURN(AddressList list, Resolve(address));
  const struct addrinfo& info = *list;
  UniqueFd fd(::socket(info.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoError(errno, "open a socket for", address.ToString());
  const int yes = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (::bind(fd.get(), info.ai_addr, info.ai_addrlen) == 0 && ::listen(fd.get(), kBacklog) == 0) {
    return fd;
  }
  if (errno != EADDRINUSE) return ErrnoError(errno, "listen on", address.ToString());
  return errors::AddressInUse(address.ToString());
}

}  // namespace

absl::StatusOr<ListeningSockets::Socket> ListeningSockets::Listen(const std::string& name,
                                                                  const HostPort& address) {
  if (const auto found = sockets_.find(name); found != sockets_.end()) {
    const Held& held = found->second;
    if (held.address.host == address.host &&
        (address.port == 0 || held.address.port == address.port)) {
      return Socket{held.fd.get(), held.address};
    }
    return errors::NameTaken(name, held.address.ToString());
  }
  if (sockets_.size() >= kMaxSockets) {
    return errors::TooManySockets(kMaxSockets);
  }
  ASSIGN_OR_RETURN(UniqueFd fd, Open(address));
  HostPort bound{address.host, static_cast<uint16_t>(BoundPort(fd.get()))};
  const Held& held = sockets_[name] = Held{std::move(fd), std::move(bound)};
  return Socket{held.fd.get(), held.address};
}

bool ListeningSockets::Release(const std::string& name) { return sockets_.erase(name) > 0; }

}  // namespace muster::supervisor
