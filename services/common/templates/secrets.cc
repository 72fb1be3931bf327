#include "services/common/templates/secrets.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "services/common/base/names.h"
#include "services/common/base/strings.h"
#include "services/common/base/suggestion.h"
#include "services/common/errors/templates.h"
#include "services/common/templates/parameters.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxSecretName = 253;
constexpr std::string_view kVaultPrefix = "vault:";

const SecretDeclaration* Find(const std::vector<SecretDeclaration>& declared,
                              const std::string& name) {
  const auto found = std::ranges::find(declared, name, &SecretDeclaration::name);
  return found == declared.end() ? nullptr : &*found;
}

}  // namespace

bool IsSecretName(std::string_view name) {
  if (name.empty() || name.size() > kMaxSecretName) return false;
  const std::vector<std::string> parts = absl::StrSplit(ToAbsl(name), '/');
  return std::ranges::all_of(
      parts, [](const std::string& part) { return ValidateName("a secret", part).ok(); });
}

std::optional<VaultReference> ReadVaultReference(std::string_view secret) {
  if (secret.size() > kMaxSecretName || !secret.starts_with(kVaultPrefix)) return std::nullopt;
  secret.remove_prefix(kVaultPrefix.size());
  const size_t field = secret.rfind('#');
  if (field == std::string_view::npos) return std::nullopt;
  VaultReference reference{std::string(secret.substr(0, field)),
                           std::string(secret.substr(field + 1))};
  const bool valid = IsSecretName(reference.path) && ValidateName("a field", reference.field).ok();
  return valid ? std::optional(std::move(reference)) : std::nullopt;
}

bool IsSecretSource(std::string_view secret) {
  return IsSecretName(secret) || ReadVaultReference(secret).has_value();
}

std::string SecretText(const v1::Command::SecretReference& reference) {
  return absl::StrCat(reference.secret(), "@", reference.version());
}

std::vector<SecretDeclaration> ReadSecrets(const Json& secrets,
                                           std::vector<std::string>* mistakes) {
  static const std::vector<std::string> kFields = {"description", "required"};
  std::vector<SecretDeclaration> declared;
  if (!secrets.is_object()) {
    mistakes->push_back("/secrets: must be an object");
    return declared;
  }
  for (const auto& [name, json] : secrets.items()) {
    const std::string place = absl::StrCat("/secrets/", name);
    const auto mistake = [&](std::string_view field, std::string_view problem) {
      mistakes->push_back(absl::StrCat(place, std::string(field), ": ", std::string(problem)));
    };
    if (!IsParameterName(name)) mistake("", "the name is not [A-Za-z_][A-Za-z0-9_]{0,127}");
    if (!json.is_object()) {
      mistake("", "must be an object");
      continue;
    }
    SecretDeclaration& secret = declared.emplace_back();
    secret.name = name;
    for (const auto& [field, value] : json.items()) {
      if (field == "required") {
        if (!value.is_boolean()) mistake("/required", "must be true or false");
        secret.required = value == Json(true);
      } else if (field == "description") {
        value.is_string() ? void(secret.description = value.get<std::string>())
                          : mistake("/description", "must be text");
      } else {
        mistake("/" + field, absl::StrCat("no such field", Suggestion(field, kFields)));
      }
    }
  }
  return declared;
}

std::vector<SecretDeclaration> MergeSecrets(const std::vector<SecretDeclaration>& type,
                                            const std::vector<SecretDeclaration>& own) {
  std::vector<SecretDeclaration> merged = type;
  for (const SecretDeclaration& secret : own) {
    const auto found = std::ranges::find(merged, secret.name, &SecretDeclaration::name);
    if (found == merged.end()) {
      merged.push_back(secret);
    } else {
      found->required = found->required || secret.required;
    }
  }
  std::ranges::sort(merged, {}, &SecretDeclaration::name);
  return merged;
}

absl::Status CheckSecrets(const std::vector<SecretDeclaration>& declared,
                          const SecretReferences& secrets) {
  if (secrets.size() > kMaxDeploymentSecrets) {
    return errors::InvalidSecrets(absl::StrCat("more than ", kMaxDeploymentSecrets));
  }
  std::vector<std::string> mistakes;
  std::set<std::string> seen;
  for (const v1::Command::SecretReference& secret : secrets) {
    const std::string name = absl::Utf8SafeCEscape(secret.name());
    if (Find(declared, secret.name()) == nullptr) {
      std::vector<std::string> known;
      for (const SecretDeclaration& one : declared) known.push_back(one.name);
      mistakes.push_back(absl::StrCat(name, ": the documents declare no such secret",
                                      Suggestion(secret.name(), known)));
    }
    if (!seen.empty() && *seen.rbegin() >= secret.name()) {
      mistakes.push_back(absl::StrCat(name, ": the names are not sorted, each once"));
    }
    seen.insert(secret.name());
    if (!IsSecretSource(secret.secret()) || secret.version() < 1) {
      mistakes.push_back(absl::StrCat(name, ": \"", absl::Utf8SafeCEscape(SecretText(secret)),
                                      "\" is no version of a secret"));
    }
  }
  for (const SecretDeclaration& one : declared) {
    if (one.required && !seen.contains(one.name)) {
      mistakes.push_back(absl::StrCat(one.name, ": is required"));
    }
  }
  if (mistakes.empty()) return absl::OkStatus();
  return errors::InvalidSecrets(absl::StrJoin(mistakes, "; "));
}

}  // namespace muster
