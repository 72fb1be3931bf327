#include "services/agent/docker/daemon_start.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "services/common/base/process_identity.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/unique_fd.h"

namespace muster {
namespace {

constexpr pid_t kSystemd = 1;
// The daemon writes it unless it has another --pidfile.
constexpr char kPidFile[] = "/run/docker.pid";
constexpr size_t kMaxPidFile = 64;

// Returns the process that listens on the socket; 0 if it is unknown.
pid_t ListenerOf(const std::string& socket_path) {
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  if (socket_path.size() >= sizeof(address.sun_path)) return 0;
  socket_path.copy(address.sun_path, socket_path.size());
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ucred listener = {};
  socklen_t size = sizeof(listener);
  if (fd.get() < 0 ||
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &listener, &size) != 0) {
    return 0;
  }
  return listener.pid;
}

pid_t ReadPidFile() {
  const auto text = ReadFileBounded(kPidFile, kMaxPidFile);
  pid_t pid = 0;
  if (!text.ok() || !absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &pid)) return 0;
  return pid;
}

}  // namespace

std::optional<absl::Time> DaemonStartOf(const std::string& socket) {
  pid_t pid = ListenerOf(socket);
  if (pid == kSystemd) pid = ReadPidFile();
  if (pid <= 0) return std::nullopt;
  const auto stat = ReadProcessStat(pid);
  if (!stat) return std::nullopt;
  const auto ticks = static_cast<double>(stat->start_ticks);
  return BootTime() + absl::Seconds(ticks / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

}  // namespace muster
