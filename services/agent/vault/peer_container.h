// The container of a process on the other end of a Unix socket.
#ifndef MUSTER_SERVICES_AGENT_VAULT_PEER_CONTAINER_H_
#define MUSTER_SERVICES_AGENT_VAULT_PEER_CONTAINER_H_

#include <string>
#include <string_view>

namespace muster {

// Returns whether the text of /proc/PID/cgroup is that of a process in the container with this id
// of 64 hex digits: a part of each path of version 1 or 2 is "ID" or "...-ID.scope".
bool IsCgroupOf(std::string_view cgroups, std::string_view container);

// Returns whether the process that opened the connection `socket` was in the container, by its pid
// as the kernel noted it (SO_PEERCRED) and its cgroup. False if the process has ended, or is in no
// namespace that this process sees.
bool IsPeerInContainer(int socket, std::string_view container);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_VAULT_PEER_CONTAINER_H_
