// The token of the jobs service in a Vault.
#ifndef MUSTER_SERVICES_JOBS_VAULT_VAULT_SESSION_H_
#define MUSTER_SERVICES_JOBS_VAULT_VAULT_SESSION_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/secret.h"
#include "services/jobs/vault/vault_connection.h"
#include "services/jobs/vault/vault_options.h"

namespace muster {

// Logs in when a token is required, renews it, and logs in again once it cannot be renewed. After a
// login that failed, calls fail in the same way for a second. Thread-safe; calls block for at most
// a few timeouts of the options.
class VaultSession {
 public:
  VaultSession(VaultOptions options, const Clock& clock);

  // Sends GET with the token, and returns an answer with the code 200 or 404, unwrapped. The errors
  // of VaultConnection::Call, and FAILED_PRECONDITION: VAULT_LOGIN_FAILED, or
  // VAULT_PERMISSION_DENIED with the reason of the server.
  absl::StatusOr<VaultAnswer> Get(const std::string& path, absl::Duration wrap_ttl)
      ABSL_LOCKS_EXCLUDED(mutex_, login_mutex_);

  // Logs in, or renews the token if half of its time has passed. To be called every few seconds.
  absl::Status Maintain() ABSL_LOCKS_EXCLUDED(mutex_, login_mutex_);

  // Lets later calls fail immediately.
  void Stop() { connection_.Stop(); }

 private:
  struct Token {
    Secret text;
    absl::Duration lease;
    absl::Duration expires;  // monotonic, as the next
    absl::Duration renew_at;
    bool renewable = false;
    bool endless = false;  // it never expires, as a root token
  };
  using TokenPointer = std::shared_ptr<const Token>;
  struct Unwrapped {
    std::string wrapping_digest;
    Secret secret_id;
    bool stored = false;  // in the file of the options
  };

  TokenPointer Current() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<TokenPointer> Obtain() ABSL_LOCKS_EXCLUDED(mutex_, login_mutex_);
  absl::StatusOr<Token> Login() ABSL_EXCLUSIVE_LOCKS_REQUIRED(login_mutex_);
  absl::StatusOr<nlohmann::json> Credentials() ABSL_EXCLUSIVE_LOCKS_REQUIRED(login_mutex_);
  absl::StatusOr<std::string> UnwrapSecretId(const std::string& wrapping_token)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(login_mutex_);
  void KeepUnwrapped() ABSL_EXCLUSIVE_LOCKS_REQUIRED(login_mutex_);
  absl::StatusOr<Token> TokenIn(const VaultAnswer& answer) const;
  absl::StatusOr<VaultAnswer> GetOnce(const VaultRequest& request);
  bool IsAccepted(const Token& token);
  void Set(Token token) ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const TokenPointer& token) ABSL_LOCKS_EXCLUDED(mutex_);

  const VaultOptions options_;
  const Clock& clock_;
  VaultConnection connection_;
  // Held during a login, so that there is one at a time.
  Mutex login_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  Unwrapped unwrapped_ ABSL_GUARDED_BY(login_mutex_);
  absl::Status login_failure_ ABSL_GUARDED_BY(login_mutex_);
  absl::Duration login_again_at_ ABSL_GUARDED_BY(login_mutex_);  // monotonic
  Mutex mutex_;
  TokenPointer token_ ABSL_GUARDED_BY(mutex_);  // null: none
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_VAULT_VAULT_SESSION_H_
