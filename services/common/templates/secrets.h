// The secrets of a deployment: their declarations in documents, and the references in its command.
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_SECRETS_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_SECRETS_H_

#include <google/protobuf/repeated_field.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"
#include "nlohmann/json.hpp"

namespace muster {

// The most secrets of a deployment.
inline constexpr int kMaxDeploymentSecrets = 16;

// A secret that a type or a template declares.
struct SecretDeclaration {
  std::string name;  // as the name of a parameter; that of the file at /secrets
  std::string description;
  bool required = false;
};

using SecretReferences = google::protobuf::RepeatedPtrField<v1::Command::SecretReference>;

// Returns true for the name of a stored secret, such as "prod/db": names (base/names.h) with "/"
// between them, together at most 253 characters.
bool IsSecretName(std::string_view name);

// A secret of a server with Vault's protocol: a field of a secret of its key-value engine.
struct VaultReference {
  std::string path;   // in the engine, such as "prod/db"; as the name of a stored secret
  std::string field;  // [A-Za-z0-9._-], not beginning with a dot
};

// Reads "vault:prod/db#password", of at most 253 characters. Nothing for another text.
std::optional<VaultReference> ReadVaultReference(std::string_view secret);

// Returns true for the secret of a reference: the name of a stored one, or one of Vault.
bool IsSecretSource(std::string_view secret);

// Returns "prod/db@3", or "vault:prod/db#password@3".
std::string SecretText(const v1::Command::SecretReference& reference);

// Reads the object "secrets" of a document: required and description of each. Adds mistakes with
// their places.
std::vector<SecretDeclaration> ReadSecrets(const nlohmann::json& secrets,
                                           std::vector<std::string>* mistakes);

// Returns the secrets of a type with those of a template, by name. A template may add secrets, and
// require those of the type.
std::vector<SecretDeclaration> MergeSecrets(const std::vector<SecretDeclaration>& type,
                                            const std::vector<SecretDeclaration>& own);

// Checks the secrets of a command: sorted by name, each once and declared, with a valid reference
// and a version, and no required one missing. INVALID_ARGUMENT (INVALID_SECRETS) with all mistakes.
absl::Status CheckSecrets(const std::vector<SecretDeclaration>& declared,
                          const SecretReferences& secrets);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_SECRETS_H_
