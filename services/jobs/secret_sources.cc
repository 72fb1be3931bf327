#include "services/jobs/secret_sources.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/templates.h"
#include "services/common/errors/vault.h"
#include "services/common/jobs/secrets_exchange.h"

namespace muster {
namespace {

bool IsOfVault(const v1::Command::SecretReference& reference) {
  return ReadVaultReference(reference.secret()).has_value();
}

struct Split {
  SecretReferences stored;
  SecretReferences vault;
};

Split SplitByProvider(const SecretReferences& references) {
  Split split;
  for (const v1::Command::SecretReference& reference : references) {
    *(IsOfVault(reference) ? split.vault : split.stored).Add() = reference;
  }
  return split;
}

// Fails if there are secrets of a Vault, and no Vault.
absl::Status CheckVault(const SecretProvider* vault, const SecretReferences& of_vault) {
  if (vault != nullptr || of_vault.empty()) return absl::OkStatus();
  return errors::VaultNotConfigured(absl::Utf8SafeCEscape(of_vault[0].secret()));
}

void SortByName(SecretReferences* references) {
  std::ranges::sort(*references, {}, [](const auto& reference) { return reference.name(); });
}

}  // namespace

bool NamesVault(const SecretReferences& references) {
  return std::ranges::any_of(references, IsOfVault);
}

absl::Status SecretSources::Resolve(SecretReferences* references) {
  if (references->size() > kMaxDeploymentSecrets) {
    return errors::InvalidSecrets(absl::StrCat("a deployment has at most ", kMaxDeploymentSecrets));
  }
  Split split = SplitByProvider(*references);
  RETURN_IF_ERROR(CheckVault(vault_, split.vault));
  RETURN_IF_ERROR(stored_.Resolve(&split.stored));
  if (!split.vault.empty()) RETURN_IF_ERROR(vault_->Resolve(&split.vault));
  references->Clear();
  for (SecretReferences* part : {&split.stored, &split.vault}) {
    for (auto& reference : *part) *references->Add() = std::move(reference);
  }
  SortByName(references);
  return absl::OkStatus();
}

absl::Status SecretSources::Check(const SecretReferences& references) {
  const Split split = SplitByProvider(references);
  RETURN_IF_ERROR(CheckVault(vault_, split.vault));
  RETURN_IF_ERROR(stored_.Check(split.stored));
  return split.vault.empty() ? absl::OkStatus() : vault_->Check(split.vault);
}

absl::StatusOr<v1::SecretValues> SecretSources::Read(const SecretReferences& references) {
  const Split split = SplitByProvider(references);
  RETURN_IF_ERROR(CheckVault(vault_, split.vault));
  ASSIGN_OR_RETURN(v1::SecretValues stored, stored_.Read(split.stored));
  if (split.vault.empty()) return stored;
  v1::SecretValues of_vault;
  const absl::Cleanup wipe = [&] {
    Wipe(&stored);
    Wipe(&of_vault);
  };
  ASSIGN_OR_RETURN(of_vault, vault_->Read(split.vault));
  v1::SecretValues values;
  size_t bytes = 0;
  int next_stored = 0;
  int next_of_vault = 0;
  for (const v1::Command::SecretReference& reference : references) {
    auto& value = IsOfVault(reference) ? *of_vault.mutable_values(next_of_vault++)
                                       : *stored.mutable_values(next_stored++);
    bytes += value.value().size();
    *values.add_values() = std::move(value);
  }
  if (bytes <= kMaxSecretsOfJob) return values;
  Wipe(&values);
  return errors::InvalidSecrets(absl::StrCat("they have ", bytes, " bytes together, and at most ",
                                             kMaxSecretsOfJob, " are possible"));
}

}  // namespace muster
