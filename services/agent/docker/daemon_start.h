// When a Docker daemon was started.
#ifndef MUSTER_SERVICES_AGENT_DOCKER_DAEMON_START_H_
#define MUSTER_SERVICES_AGENT_DOCKER_DAEMON_START_H_

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace muster {

// Returns the start of the process that serves this Unix socket, to a hundredth of a second. If
// systemd has opened the socket for it, its pid is read from Docker's usual file. Returns nothing
// if it is unknown, such as from another pid namespace.
std::optional<absl::Time> DaemonStartOf(const std::string& socket);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_DOCKER_DAEMON_START_H_
