// Generated from vault.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/vault.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status VaultNotConfigured(std::string_view secret) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "VAULT_NOT_CONFIGURED",
                   absl::StrCat("secret \"", ToAbsl(secret), "\" is in Vault, and the jobs service has no address of a Vault"),
                   "Set secrets.vault in the configuration of the jobs service, or name a stored secret: muster secret list.");
}

absl::Status VaultSecretNotFound(std::string_view secret, std::string_view why) {
  return MakeError(absl::StatusCode::kNotFound, "VAULT_SECRET_NOT_FOUND",
                   absl::StrCat("secret \"", ToAbsl(secret), "\" not found in Vault: ", ToAbsl(why)),
                   "Compare secrets.vault.mount, path, field and version with Vault: bao kv get -mount=MOUNT PATH.");
}

absl::Status VaultSecretInvalid(std::string_view secret, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "VAULT_SECRET_INVALID",
                   absl::StrCat("secret \"", ToAbsl(secret), "\" of Vault cannot be used: ", ToAbsl(why)),
                   "Store another value in Vault, and deploy again.");
}

absl::Status VaultPermissionDenied(std::string_view call, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "VAULT_PERMISSION_DENIED",
                   absl::StrCat(ToAbsl(call), " is refused by Vault: ", ToAbsl(why)),
                   "Give the policy of the jobs service in Vault `read` on MOUNT/data/PATH and MOUNT/subkeys/PATH.");
}

absl::Status VaultLoginFailed(std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "VAULT_LOGIN_FAILED",
                   absl::StrCat("the jobs service cannot log in to Vault: ", ToAbsl(why)),
                   "Compare secrets.vault in the configuration of the jobs service, and its files, with the role in Vault.");
}

absl::Status VaultSealed(std::string_view address) {
  return MakeError(absl::StatusCode::kUnavailable, "VAULT_SEALED",
                   absl::StrCat("the Vault at ", ToAbsl(address), " is sealed"),
                   "Unseal it: bao operator unseal.");
}

absl::Status VaultUnreachable(std::string_view address, std::string_view why) {
  return MakeError(absl::StatusCode::kUnavailable, "VAULT_UNREACHABLE",
                   absl::StrCat("no answer from Vault at ", ToAbsl(address), ": ", ToAbsl(why)),
                   "Start Vault, or correct secrets.vault.address in the configuration of the jobs service.");
}

absl::Status VaultUntrusted(std::string_view address, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "VAULT_UNTRUSTED",
                   absl::StrCat("the jobs service and Vault at ", ToAbsl(address), " do not accept the certificate of the other: ", ToAbsl(why)),
                   "Set secrets.vault.ca_file to the CA of Vault, and secrets.vault.address to a name in its certificate.");
}

absl::Status VaultBusy() {
  return MakeError(absl::StatusCode::kUnavailable, "VAULT_BUSY",
                   "too many requests of the jobs service wait for Vault",
                   "Try again later. If it lasts, look at the load of Vault, or deploy to fewer nodes at a time: muster deploy --parallel.");
}

absl::Status VaultFailed(std::string_view call, int64_t status, std::string_view why) {
  return MakeError(absl::StatusCode::kUnavailable, "VAULT_FAILED",
                   absl::StrCat(ToAbsl(call), " failed in Vault with ", status, ": ", ToAbsl(why)),
                   "Look for an error in the log of Vault.");
}

absl::Status VaultAnswerInvalid(std::string_view call, std::string_view why) {
  return MakeError(absl::StatusCode::kInternal, "VAULT_ANSWER_INVALID",
                   absl::StrCat("the answer of Vault to ", ToAbsl(call), " is invalid: ", ToAbsl(why)),
                   "Check that secrets.vault.address in the configuration of the jobs service is that of Vault or OpenBao.");
}

}  // namespace muster::errors
