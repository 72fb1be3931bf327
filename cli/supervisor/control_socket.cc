#include "cli/supervisor/control_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/cli.h"

namespace muster::supervisor {
namespace {

constexpr size_t kMaxLine = 4096;
constexpr size_t kMaxConnections = 64;
constexpr size_t kMaxAnswer = 64 * 1024;

absl::StatusOr<struct sockaddr_un> SocketAddress(const std::string& path) {
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return errors::PathTooLong(static_cast<int64_t>(sizeof(address.sun_path) - 1), path);
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  return address;
}

bool PeerIsOwner(int fd) {
  struct ucred peer = {};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == ::geteuid() || peer.uid == 0);
}

// Sends one message. Returns false if the answer does not fit into the socket's buffer: the peer
// does not read.
bool Send(int fd, const ControlAnswer& answer) {
  std::string line = answer.line + "\n";
  struct iovec part = {.iov_base = line.data(), .iov_len = line.size()};
  struct msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (answer.fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &answer.fd, sizeof(int));
  }
  return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(line.size());
}

}  // namespace

absl::Status CheckSocketPath(const std::string& path) { return SocketAddress(path).status(); }

absl::StatusOr<std::unique_ptr<ControlSocket>> ControlSocket::Open(const std::string& path,
                                                                   EventLoop& loop,
                                                                   Handler handler) {
  ASSIGN_OR_RETURN(struct sockaddr_un address, SocketAddress(path));
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ::unlink(path.c_str());
  const mode_t mask = ::umask(0177);
  const int bound = ::bind(fd.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof(address));
  const int fault = errno;
  ::umask(mask);
  if (bound != 0) return ErrnoError(fault, "listen on", path);
  if (::listen(fd.get(), kMaxConnections) != 0) return ErrnoError(errno, "listen on", path);
  return std::unique_ptr<ControlSocket>(
      new ControlSocket(path, std::move(fd), loop, std::move(handler)));
}

ControlSocket::ControlSocket(std::string path, UniqueFd fd, EventLoop& loop, Handler handler)
    : path_(std::move(path)), fd_(std::move(fd)), loop_(loop), handler_(std::move(handler)) {
  loop_.Watch(fd_.get(), [this] { Accept(); });
}

ControlSocket::~ControlSocket() {
  while (!connections_.empty()) Close(connections_.begin()->first);
  loop_.Unwatch(fd_.get());
  ::unlink(path_.c_str());
}

void ControlSocket::Accept() {
  UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid() || connections_.size() >= kMaxConnections || !PeerIsOwner(fd.get())) return;
  const int number = fd.get();
  connections_[number].fd = std::move(fd);
  loop_.Watch(number, [this, number] { Read(number); });
}

void ControlSocket::Read(int fd) {
  Connection& connection = connections_.at(fd);
  char buffer[kMaxLine];
  const ssize_t count = ::recv(fd, buffer, sizeof(buffer), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return Close(fd);
  connection.pending.append(buffer, static_cast<size_t>(count));
  size_t end = 0;
  while ((end = connection.pending.find('\n')) != std::string::npos) {
    const std::string line = connection.pending.substr(0, end);
    connection.pending.erase(0, end + 1);
    if (!Send(fd, handler_(line))) return Close(fd);
  }
  if (connection.pending.size() > kMaxLine) Close(fd);
}

void ControlSocket::Close(int fd) {
  loop_.Unwatch(fd);
  connections_.erase(fd);
}

absl::StatusOr<std::string> CallSupervisor(const std::string& path, const std::string& request,
                                           absl::Duration limit) {
  ASSIGN_OR_RETURN(struct sockaddr_un address, SocketAddress(path));
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const struct timeval time = absl::ToTimeval(limit);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
  const std::string line = request + "\n";
  if (::connect(fd.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) != 0 ||
      ::send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL) !=
          static_cast<ssize_t>(line.size())) {
    return errors::NoSupervisor(path);
  }
  std::string answer;
  while (answer.size() < kMaxAnswer && answer.find('\n') == std::string::npos) {
    char buffer[4096];
    const ssize_t count = ::recv(fd.get(), buffer, sizeof(buffer), 0);
    if (count <= 0) return errors::NoSupervisor(path);
    answer.append(buffer, static_cast<size_t>(count));
  }
  return answer.substr(0, answer.find('\n'));
}

}  // namespace muster::supervisor
