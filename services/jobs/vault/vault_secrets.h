// The secrets of a server with Vault's protocol: a key-value engine of version 2.
#ifndef MUSTER_SERVICES_JOBS_VAULT_VAULT_SECRETS_H_
#define MUSTER_SERVICES_JOBS_VAULT_VAULT_SECRETS_H_

#include "services/jobs/secret_provider.h"
#include "services/jobs/vault/vault_session.h"

namespace muster {

// References are "vault:PATH#FIELD". The version is that of the secret at the path. Values are read
// from the server by Read alone, and stored nowhere. Thread-safe; calls wait for the server.
class VaultSecrets final : public SecretProvider {
 public:
  VaultSecrets(const VaultOptions& options, const Clock& clock);

  // NOT_FOUND (VAULT_SECRET_NOT_FOUND) if the server has no such version or field, or has deleted
  // it, and the errors of VaultSession::Get. Reads the names of the fields, and no value. No
  // request begins after 10 s.
  absl::Status Resolve(SecretReferences* references) override;

  // Returns OK: whether the server has the versions is found by Read.
  absl::Status Check(const SecretReferences&) override { return absl::OkStatus(); }

  // Each path is read once; no request begins after 10 s either. Fails as Resolve, and with
  // FAILED_PRECONDITION (VAULT_SECRET_INVALID). A value that is no text is its JSON.
  absl::StatusOr<v1::SecretValues> Read(const SecretReferences& references) override;

  // Keeps the session. Logs failures. To be called every few seconds.
  void Maintain();

  // Lets later calls fail immediately, with UNAVAILABLE (VAULT_UNREACHABLE).
  void Stop() { session_.Stop(); }

 private:
  // Reads "data" or "subkeys" of a secret, unless it is after `end` (monotonic).
  absl::StatusOr<VaultAnswer> Get(std::string_view kind, const v1::Command::SecretReference& secret,
                                  absl::Duration end);

  const VaultOptions options_;
  const Clock& clock_;
  VaultSession session_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_VAULT_VAULT_SECRETS_H_
