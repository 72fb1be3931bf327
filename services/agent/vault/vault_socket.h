// A server with Vault's protocol on a Unix socket, for one container.
#ifndef MUSTER_SERVICES_AGENT_VAULT_VAULT_SOCKET_H_
#define MUSTER_SERVICES_AGENT_VAULT_VAULT_SOCKET_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/agent/vault/vault_api.h"
#include "services/common/base/unique_fd.h"

namespace muster {

// Further connections of a container wait until one ends.
inline constexpr size_t kMaxVaultConnections = 16;
// The largest head, and the largest body, of a request.
inline constexpr size_t kMaxVaultHead = size_t{8} << 10;
inline constexpr size_t kMaxVaultBody = size_t{16} << 10;
// A connection is closed if a request, or its answer, is not complete after this time.
inline constexpr absl::Duration kVaultIdle = absl::Seconds(30);

struct VaultSocketOptions {
  VaultApi api;
  // Decides about a connection by its socket; the other ones are closed. Called by the thread of
  // the server.
  std::function<bool(int socket)> admits;
  // Receives the names of the secrets in each answer. Called by the thread of the server.
  std::function<void(const std::vector<std::string>& names)> on_read;
  absl::Duration idle = kVaultIdle;
};

// Serves on its own thread, until its destruction, which closes all connections. Thread-safe.
class VaultSocket {
 public:
  virtual ~VaultSocket() = default;

  // `listener` listens. UNAVAILABLE (SECRET_UNAVAILABLE) if it cannot be served.
  static absl::StatusOr<std::unique_ptr<VaultSocket>> Serve(UniqueFd listener,
                                                            VaultSocketOptions options);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_VAULT_VAULT_SOCKET_H_
