#include "services/aggregator/nodes/command_trust.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/command_revocations.h"
#include "services/common/identity/identity.h"

namespace muster {
namespace {

// Only identities of the fleet may sign; the CA refuses the other roles.
std::optional<FleetName> SignerName(const Identity& identity) {
  if (const auto* user = std::get_if<UserIdentity>(&identity.name)) return *user;
  if (const auto* service = std::get_if<ServiceIdentity>(&identity.name)) return *service;
  return std::nullopt;
}

bool MaySign(std::string_view subject, std::string_view fleet) {
  const auto identity = ParseIdentity(subject, fleet);
  return identity.ok() &&
         (RoleOf(*identity) == Role::kOperator || RoleOf(*identity) == Role::kGateway);
}

}  // namespace

absl::StatusOr<Certificate> CommandTrust::Issue(const Identity& signer,
                                                const std::string& public_key_pem) {
  ASSIGN_OR_RETURN(const auto key, SigningPublicKey::FromPem(public_key_pem));
  const auto name = SignerName(signer);
  if (!name) return absl::InternalError("the policy admits only operators and gateways");
  const absl::Time now = clock_.Now();
  auto issued = authority_.Issue(*name, key, now);
  if (!issued.ok()) return issued;
  AuditRecord record;
  record.at = absl::ToUnixMicros(now);
  record.kind = AuditKind::kCredential;
  record.actor = ToUri(signer).value_or("");
  record.subject = record.actor;
  record.text = absl::StrCat("issued signing certificate ", issued->IssuerKeyId(), ":",
                             issued->Serial(), " for commands");
  RETURN_IF_ERROR(store_.ApplyAndWait(AppendAudit{std::move(record)}));
  return issued;
}

absl::StatusOr<v1::CommandRevocations> CommandTrust::Revocations() {
  ASSIGN_OR_RETURN(const auto revocations, store_.Revocations());
  v1::CommandRevocations list;
  for (const RevocationRecord& revocation : revocations) {
    if (MaySign(revocation.subject, authority_.fleet())) list.add_revoked(revocation.subject);
  }
  list.set_version(list.revoked_size() + 1);
  RETURN_IF_ERROR(SignCommandRevocations(authority_.fleet(), authority_.key(), &list));
  return list;
}

}  // namespace muster
