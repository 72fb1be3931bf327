// Requests to a server with the HTTP API of Vault.
#ifndef MUSTER_SERVICES_JOBS_VAULT_VAULT_CONNECTION_H_
#define MUSTER_SERVICES_JOBS_VAULT_VAULT_CONNECTION_H_

#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "services/common/base/mutex.h"
#include "services/common/identity/secret.h"
#include "services/common/rpc/https_handle.h"
#include "services/jobs/vault/vault_options.h"

namespace muster {

// The largest answer that is read. An entry of Vault has 1 MiB.
inline constexpr size_t kMaxVaultAnswer = size_t{2} << 20;

struct VaultRequest {
  std::string method;             // GET or POST
  std::string path;               // below /v1/, encoded
  nlohmann::json body = nullptr;  // null: none
  std::string_view token = {};    // outlives the call; empty: none
  absl::Duration wrap_ttl = {};   // of the answer; zero: the server does not wrap it
};

// An answer: its members are wiped with it. Not thread-safe.
class VaultAnswer {
 public:
  VaultAnswer(long code, nlohmann::json json) : code_(code), json_(std::move(json)) {}
  VaultAnswer(VaultAnswer&& other) noexcept = default;
  VaultAnswer& operator=(VaultAnswer&& other) noexcept = default;
  ~VaultAnswer();

  // The status of HTTP: 200 to 299, 400, 403 or 404.
  long code() const { return code_; }
  bool ok() const { return code_ < 300; }

  // Return the member at a path of objects, or null, or the text there, or "".
  const nlohmann::json& At(std::initializer_list<std::string_view> path) const;
  std::string TextAt(std::initializer_list<std::string_view> path) const;

  // Returns the errors of the server in one line.
  std::string Errors() const;

 private:
  long code_;
  nlohmann::json json_;
};

// Connections are used again. Follows one redirection: a server that is not the active one of its
// cluster may redirect. Thread-safe; a call blocks for at most the timeout of the options.
class VaultConnection {
 public:
  explicit VaultConnection(const VaultOptions& options) : options_(options) {}

  // Sends a request. UNAVAILABLE (VAULT_UNREACHABLE, VAULT_SEALED, VAULT_FAILED),
  // FAILED_PRECONDITION (VAULT_UNTRUSTED, VAULT_LOGIN_FAILED if a file cannot be read), INTERNAL
  // (VAULT_ANSWER_INVALID).
  absl::StatusOr<VaultAnswer> Call(const VaultRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);

  // Lets later calls fail immediately with VAULT_UNREACHABLE.
  void Stop() { stopped_ = true; }

  // Makes later calls read the files of the options again, and open new connections.
  void Reset() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Handle {
    Curl curl;
    int generation = 0;
  };
  absl::StatusOr<Handle> Acquire() ABSL_LOCKS_EXCLUDED(mutex_);
  void Release(Handle handle) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<VaultAnswer> Perform(CURL* curl, const VaultRequest& request) const;
  absl::Status FromCurl(CURLcode code, const char* detail) const;

  const VaultOptions options_;
  std::atomic<bool> stopped_ = false;
  Mutex mutex_;
  std::vector<Curl> idle_ ABSL_GUARDED_BY(mutex_);
  int generation_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Returns "GET secret/data/prod/db" for errors and the log.
std::string VaultCallName(const VaultRequest& request);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_VAULT_VAULT_CONNECTION_H_
