#include "services/common/rpc/close_connection.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "services/common/base/unique_fd.h"

namespace muster {
namespace {

using GetName = int (*)(int, sockaddr*, socklen_t*);

std::array<uint8_t, 16> AddressOf(const in6_addr& address) {
  std::array<uint8_t, 16> bytes = {};
  std::memcpy(bytes.data(), &address, bytes.size());
  return bytes;
}

std::array<uint8_t, 16> AddressOf(const in_addr& address) {
  std::array<uint8_t, 16> bytes = {};
  bytes[10] = bytes[11] = 0xff;
  std::memcpy(&bytes[12], &address, 4);
  return bytes;
}

// Port 0: the descriptor has no such endpoint.
TcpPeer EndpointOf(int fd, GetName get_name) {
  sockaddr_storage storage = {};
  socklen_t length = sizeof(storage);
  if (get_name(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  if (storage.ss_family == AF_INET) {
    const auto& address = reinterpret_cast<const sockaddr_in&>(storage);
    return {AddressOf(address.sin_addr), ntohs(address.sin_port)};
  }
  if (storage.ss_family != AF_INET6) return {};
  const auto& address = reinterpret_cast<const sockaddr_in6&>(storage);
  return {AddressOf(address.sin6_addr), ntohs(address.sin6_port)};
}

}  // namespace

OpenConnections::OpenConnections(absl::Span<const int> local_ports) {
  for (const int port : local_ports) by_port_.try_emplace(port);
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir("/proc/self/fd"), closedir);
  if (open == nullptr) return;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has this stream.
  while (const dirent* entry = readdir(open.get())) {
    const int fd = std::atoi(static_cast<const char*>(entry->d_name));
    if (fd <= 2) continue;
    const auto found = by_port_.find(EndpointOf(fd, getsockname).port);
    if (found == by_port_.end()) continue;
    const TcpPeer peer = EndpointOf(fd, getpeername);
    if (peer.port != 0) found->second.push_back({fd, peer});
  }
}

// Does nothing if gRPC has closed the connection meanwhile: another thread may have got its number.
bool OpenConnections::ShutDown(const Connection& connection) {
  const UniqueFd copy(fcntl(connection.fd, F_DUPFD_CLOEXEC, 0));
  return copy.get() >= 0 && EndpointOf(copy.get(), getpeername) == connection.peer &&
         shutdown(copy.get(), SHUT_RDWR) == 0;
}

bool OpenConnections::Close(std::string_view peer, int local_port) {
  const TcpPeer wanted = ParseTcpPeer(peer);
  const auto found = by_port_.find(local_port);
  if (wanted.port == 0 || found == by_port_.end()) return false;
  std::vector<Connection>& connections = found->second;
  const auto it = std::find_if(connections.begin(), connections.end(),
                               [&](const Connection& c) { return c.peer == wanted; });
  if (it == connections.end()) return false;
  const bool closed = ShutDown(*it);
  connections.erase(it);
  return closed;
}

size_t OpenConnections::CloseExcess(int local_port, const ConnectionLimits& limits) {
  const auto found = by_port_.find(local_port);
  if (found == by_port_.end()) return 0;
  absl::flat_hash_map<std::array<uint8_t, 16>, std::vector<Connection>> by_address;
  for (const Connection& connection : found->second) {
    by_address[connection.peer.address].push_back(connection);
  }
  size_t open = found->second.size();
  found->second.clear();
  std::vector<std::vector<Connection>> addresses;
  for (auto& [address, connections] : by_address) addresses.push_back(std::move(connections));
  const auto fewer = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  std::make_heap(addresses.begin(), addresses.end(), fewer);
  size_t closed = 0;
  while (open > limits.in_all || (open > 0 && addresses.front().size() > limits.of_address)) {
    std::pop_heap(addresses.begin(), addresses.end(), fewer);
    if (ShutDown(addresses.back().back())) ++closed;
    addresses.back().pop_back();
    std::push_heap(addresses.begin(), addresses.end(), fewer);
    --open;
  }
  return closed;
}

}  // namespace muster
