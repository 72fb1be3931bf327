#include "services/common/rpc/close_connection.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "services/common/base/strings.h"
#include "services/common/base/unique_fd.h"

namespace muster {
namespace {

using GetName = int (*)(int, sockaddr*, socklen_t*);

struct Endpoint {
  std::string address;  // "192.0.2.1" or "[2001:db8::1]"
  int port = 0;

  std::string ToString() const { return absl::StrCat(address, ":", port); }
};

// Returns the text of an IPv4 address also for one that is mapped into IPv6.
Endpoint EndpointOf(int fd, GetName get_name) {
  sockaddr_storage storage = {};
  socklen_t length = sizeof(storage);
  if (get_name(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (storage.ss_family == AF_INET) {
    const auto& address = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
    return {text.data(), ntohs(address.sin_port)};
  }
  if (storage.ss_family != AF_INET6) return {};
  const auto& address = reinterpret_cast<const sockaddr_in6&>(storage);
  const int port = ntohs(address.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) {
    inet_ntop(AF_INET, &address.sin6_addr.s6_addr[12], text.data(), text.size());
    return {text.data(), port};
  }
  inet_ntop(AF_INET6, &address.sin6_addr, text.data(), text.size());
  return {absl::StrCat("[", text.data(), "]"), port};
}

struct Connection {
  int fd = -1;  // of gRPC, which may close it at any time
  Endpoint peer;
};

// Returns the connections of this process with the local port.
std::vector<Connection> ConnectionsOf(int local_port) {
  std::vector<Connection> connections;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir("/proc/self/fd"), closedir);
  if (open == nullptr) return connections;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has this stream.
  while (const dirent* entry = readdir(open.get())) {
    const int fd = std::atoi(static_cast<const char*>(entry->d_name));
    if (fd <= 2 || EndpointOf(fd, getsockname).port != local_port) continue;
    Endpoint peer = EndpointOf(fd, getpeername);
    if (peer.port != 0) connections.push_back({fd, std::move(peer)});
  }
  return connections;
}

// Shuts down a connection unless gRPC has closed it meanwhile, and another thread may have got its
// number.
bool ShutDown(const Connection& connection) {
  const UniqueFd copy(fcntl(connection.fd, F_DUPFD_CLOEXEC, 0));
  return copy.get() >= 0 &&
         EndpointOf(copy.get(), getpeername).ToString() == connection.peer.ToString() &&
         shutdown(copy.get(), SHUT_RDWR) == 0;
}

}  // namespace

bool CloseConnection(std::string_view peer, int local_port) {
  const size_t scheme = peer.find(':');
  if (scheme == std::string_view::npos) return false;
  const std::string wanted =
      absl::StrReplaceAll(ToAbsl(peer.substr(scheme + 1)), {{"%5B", "["}, {"%5D", "]"}});
  for (const Connection& connection : ConnectionsOf(local_port)) {
    if (connection.peer.ToString() == wanted) return ShutDown(connection);
  }
  return false;
}

size_t CloseExcessConnections(int local_port, const ConnectionLimits& limits) {
  absl::flat_hash_map<std::string, std::vector<Connection>> by_address;
  size_t open = 0;
  for (Connection& connection : ConnectionsOf(local_port)) {
    by_address[connection.peer.address].push_back(std::move(connection));
    ++open;
  }
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
