// The control socket of the supervisor: a Unix stream socket. A request is one line of JSON. An
// answer is one line of JSON, optionally with an open descriptor (SCM_RIGHTS). A connection may
// send many requests.
#ifndef MUSTER_CLI_SUPERVISOR_CONTROL_SOCKET_H_
#define MUSTER_CLI_SUPERVISOR_CONTROL_SOCKET_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/supervisor/event_loop.h"
#include "services/common/base/unique_fd.h"

namespace muster::supervisor {

struct ControlAnswer {
  std::string line;  // without its newline
  int fd = -1;       // sent if it is valid; the caller keeps ownership
};

// The server. Accepts connections only from the same user and from root, at most 64 at a time, with
// lines of at most 4 KiB. Not thread-safe: use it only on the thread of its event loop.
class ControlSocket {
 public:
  using Handler = std::function<ControlAnswer(const std::string& line)>;

  // Replaces any file at `path`: the caller holds the lock that excludes another server.
  static absl::StatusOr<std::unique_ptr<ControlSocket>> Open(const std::string& path,
                                                             EventLoop& loop, Handler handler);
  ~ControlSocket();

 private:
  struct Connection {
    UniqueFd fd;
    std::string pending;  // an incomplete line
  };

  ControlSocket(std::string path, UniqueFd fd, EventLoop& loop, Handler handler);
  void Accept();
  void Read(int fd);
  void Close(int fd);

  const std::string path_;
  const UniqueFd fd_;
  EventLoop& loop_;
  const Handler handler_;
  std::map<int, Connection> connections_;
};

// Returns INVALID_ARGUMENT (PATH_TOO_LONG) if a socket cannot have this path.
absl::Status CheckSocketPath(const std::string& path);

// Sends one request and returns its answer. UNAVAILABLE (NO_SUPERVISOR) if no server answers.
absl::StatusOr<std::string> CallSupervisor(const std::string& path, const std::string& request,
                                           absl::Duration limit);

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_CONTROL_SOCKET_H_
