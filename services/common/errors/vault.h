// Generated from vault.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_VAULT_H_
#define MUSTER_SERVICES_COMMON_ERRORS_VAULT_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

// Secrets in Vault.
namespace muster::errors {

// FAILED_PRECONDITION, VAULT_NOT_CONFIGURED.
absl::Status VaultNotConfigured(std::string_view secret);
// NOT_FOUND, VAULT_SECRET_NOT_FOUND.
absl::Status VaultSecretNotFound(std::string_view secret, std::string_view why);
// FAILED_PRECONDITION, VAULT_SECRET_INVALID.
absl::Status VaultSecretInvalid(std::string_view secret, std::string_view why);
// FAILED_PRECONDITION, VAULT_PERMISSION_DENIED.
absl::Status VaultPermissionDenied(std::string_view call, std::string_view why);
// FAILED_PRECONDITION, VAULT_LOGIN_FAILED.
absl::Status VaultLoginFailed(std::string_view why);
// UNAVAILABLE, VAULT_SEALED.
absl::Status VaultSealed(std::string_view address);
// UNAVAILABLE, VAULT_UNREACHABLE.
absl::Status VaultUnreachable(std::string_view address, std::string_view why);
// FAILED_PRECONDITION, VAULT_UNTRUSTED.
absl::Status VaultUntrusted(std::string_view address, std::string_view why);
// UNAVAILABLE, VAULT_BUSY.
absl::Status VaultBusy();
// UNAVAILABLE, VAULT_FAILED.
absl::Status VaultFailed(std::string_view call, int64_t status, std::string_view why);
// INTERNAL, VAULT_ANSWER_INVALID.
absl::Status VaultAnswerInvalid(std::string_view call, std::string_view why);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_VAULT_H_
