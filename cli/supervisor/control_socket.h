// The supervisor's own door: a Unix stream socket where one line of JSON is a request and one line
// is its answer, perhaps with an open descriptor (SCM_RIGHTS). A connection may ask many times.
#ifndef MUSTER_CLI_SUPERVISOR_CONTROL_SOCKET_H_
#define MUSTER_CLI_SUPERVISOR_CONTROL_SOCKET_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/supervisor/event_loop.h"
#include "services/common/base/unique_fd.h"

namespace muster::supervisor {

struct ControlAnswer {
  std::string line;  // without its newline
  int fd = -1;       // sent along if it is valid; stays the caller's
};

// The server's side. Takes connections of its own user (and root) alone, 64 at a time, lines of at
// most 4 KiB. Not thread-safe: it lives on its event loop.
class ControlSocket {
 public:
  using Handler = std::function<ControlAnswer(const std::string& line)>;

  // Replaces whatever lies at `path`: the caller holds the lock that says nobody serves there.
  static absl::StatusOr<std::unique_ptr<ControlSocket>> Open(const std::string& path,
                                                             EventLoop& loop, Handler handler);
  ~ControlSocket();

 private:
  struct Connection {
    UniqueFd fd;
    std::string pending;  // the beginning of a line
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

// The client's side: one request, one answer. UNAVAILABLE (NO_SUPERVISOR) if nobody serves there.
absl::StatusOr<std::string> AskSupervisor(const std::string& path, const std::string& request,
                                          absl::Duration limit);

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_CONTROL_SOCKET_H_
