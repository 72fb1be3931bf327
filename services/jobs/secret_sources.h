// The secrets of the jobs service: those that it stores, and those of a Vault.
#ifndef MUSTER_SERVICES_JOBS_SECRET_SOURCES_H_
#define MUSTER_SERVICES_JOBS_SECRET_SOURCES_H_

#include "services/jobs/secret_provider.h"

namespace muster {

// Returns true if one of the references is of a Vault: Resolve and Read then wait for it.
bool NamesVault(const SecretReferences& references);

// Passes each reference to the provider of its secret.
class SecretSources final : public SecretProvider {
 public:
  // Both outlive this object. `vault` may be null: then its secrets fail with FAILED_PRECONDITION
  // (VAULT_NOT_CONFIGURED).
  SecretSources(SecretProvider& stored, SecretProvider* vault) : stored_(stored), vault_(vault) {}

  // Also sorts the references by name. INVALID_ARGUMENT (INVALID_SECRETS), and the errors of the
  // providers; likewise below.
  absl::Status Resolve(SecretReferences* references) override;
  absl::Status Check(const SecretReferences& references) override;
  absl::StatusOr<v1::SecretValues> Read(const SecretReferences& references) override;

 private:
  SecretProvider& stored_;
  SecretProvider* const vault_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_SECRET_SOURCES_H_
