#include "services/jobs/vault/vault_secrets.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/vault.h"
#include "services/common/identity/key_wrap.h"  // kMaxSecret
#include "services/common/jobs/secrets_exchange.h"

namespace muster {
namespace {

using Json = nlohmann::json;
using Reference = v1::Command::SecretReference;

constexpr std::string_view kValues = "data";
// An agent waits for 15 s.
constexpr absl::Duration kMaxRead = absl::Seconds(10);

std::string TextOf(const Reference& reference) {
  return reference.version() == 0 ? absl::Utf8SafeCEscape(reference.secret())
                                  : absl::Utf8SafeCEscape(SecretText(reference));
}

absl::Status NotFound(const Reference& reference, std::string_view why) {
  return errors::VaultSecretNotFound(TextOf(reference), why);
}

// Returns why an answer of 404 has no secret.
std::string WhyNot(const VaultAnswer& answer) {
  if (answer.At({"data", "metadata", "destroyed"}) == Json(true)) return "the version is destroyed";
  const std::string deleted = answer.TextAt({"data", "metadata", "deletion_time"});
  if (!deleted.empty()) return absl::StrCat("the version was deleted at ", deleted);
  const Json& errors = answer.At({"errors"});
  if (errors.is_array() && !errors.empty()) return answer.Errors();
  return "there is no such path or version";
}

absl::Status SetValue(const Reference& reference, const Json& field,
                      v1::SecretValues::Value* value) {
  value->set_name(reference.name());
  value->set_secret(reference.secret());
  value->set_version(reference.version());
  value->set_value(field.is_string() ? field.get_ref<const std::string&>() : field.dump());
  if (!value->value().empty() && value->value().size() <= kMaxSecret) return absl::OkStatus();
  return errors::VaultSecretInvalid(TextOf(reference),
                                    absl::StrCat("the value has ", value->value().size(),
                                                 " bytes, and must have 1 to ", kMaxSecret));
}

}  // namespace

VaultSecrets::VaultSecrets(const VaultOptions& options, const Clock& clock)
    : options_(options), clock_(clock), session_(options, clock) {}

absl::StatusOr<VaultAnswer> VaultSecrets::Get(std::string_view kind, const Reference& secret,
                                              absl::Duration end) {
  if (clock_.MonotonicNow() > end) {
    return errors::VaultUnreachable(options_.address, "it is too slow");
  }
  const auto reference = ReadVaultReference(secret.secret());
  if (!reference) return NotFound(secret, "it is no reference to a secret of Vault");
  // The characters of a path need no encoding.
  std::string path = absl::StrCat(options_.mount, "/", ToAbsl(kind), "/", reference->path);
  if (secret.version() != 0) absl::StrAppend(&path, "?version=", secret.version());
  ASSIGN_OR_RETURN(auto answer,
                   session_.Get(path, kind == kValues ? options_.wrap_ttl : absl::ZeroDuration()));
  if (!answer.ok()) return NotFound(secret, WhyNot(answer));
  const Json& version = answer.At({"data", "metadata", "version"});
  if (!version.is_number_integer() ||
      (secret.version() != 0 && version.get<int64_t>() != secret.version())) {
    return errors::VaultAnswerInvalid(absl::StrCat("GET ", path),
                                      "it has not that version; is the engine of version 2?");
  }
  return answer;
}

absl::Status VaultSecrets::Resolve(SecretReferences* references) {
  const absl::Duration end = clock_.MonotonicNow() + kMaxRead;
  for (Reference& secret : *references) {
    ASSIGN_OR_RETURN(const auto answer, Get("subkeys", secret, end));
    const std::string field = ReadVaultReference(secret.secret())->field;
    const Json& fields = answer.At({"data", "subkeys"});
    if (!fields.is_object() || !fields.contains(field)) {
      return NotFound(secret, "there is no such field");
    }
    secret.set_version(answer.At({"data", "metadata", "version"}).get<int64_t>());
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::SecretValues> VaultSecrets::Read(const SecretReferences& references) {
  v1::SecretValues values;
  absl::Cleanup wipe = [&values] { Wipe(&values); };
  const absl::Duration end = clock_.MonotonicNow() + kMaxRead;
  std::map<std::pair<std::string, int64_t>, std::vector<int>> by_entry;  // indexes of references
  for (int i = 0; i < references.size(); ++i) {
    const auto reference = ReadVaultReference(references[i].secret());
    by_entry[{reference ? reference->path : "", references[i].version()}].push_back(i);
    values.add_values();
  }
  for (const auto& [entry, indexes] : by_entry) {  // one answer at a time is in memory
    ASSIGN_OR_RETURN(const auto answer, Get(kValues, references[indexes.front()], end));
    for (const int i : indexes) {
      const std::string field = ReadVaultReference(references[i].secret())->field;
      const Json& value = answer.At({"data", "data", field});
      if (value.is_null()) return NotFound(references[i], "there is no such field");
      RETURN_IF_ERROR(SetValue(references[i], value, values.mutable_values(i)));
    }
  }
  std::move(wipe).Cancel();
  return values;
}

void VaultSecrets::Maintain() {
  if (const absl::Status kept = session_.Maintain(); !kept.ok()) {
    LogLimited(LogLevel::kWarning, "the session with Vault cannot be kept", "vault-session",
               {{"address", options_.address}, {"error", kept}});
  }
}

}  // namespace muster
