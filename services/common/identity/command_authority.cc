#include "services/common/identity/command_authority.h"

#include <openssl/x509v3.h>

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/certificate_builder.h"
#include "services/common/identity/pem_files.h"

namespace muster {
namespace {

constexpr absl::Duration kAuthorityValidity = absl::Hours(24 * 365 * 20);
constexpr unsigned kPublic = 0644;

absl::Status Mismatch(std::string_view why) {
  return errors::AuthorityMismatch("the fleet's command authority", why);
}

bool MaySign(const FleetName& name) {
  if (std::holds_alternative<UserIdentity>(name)) return true;
  const auto* service = std::get_if<ServiceIdentity>(&name);
  return service != nullptr && service->role == ServiceRole::kGateway;
}

Identity::Name Widen(const FleetName& name) {
  return std::visit([](const auto& n) -> Identity::Name { return n; }, name);
}

}  // namespace

absl::StatusOr<CommandAuthority> CommandAuthority::Create(std::string_view fleet, PrivateKey key,
                                                          absl::Time now) {
  RETURN_IF_ERROR(CheckFleet(fleet));
  CertificateSpec spec;
  spec.common_name = absl::StrCat("Muster commands of ", ToAbsl(fleet));
  spec.uri = absl::StrCat("spiffe://", ToAbsl(fleet));
  spec.not_before = now - kBackdate;
  spec.not_after = now + kAuthorityValidity;
  ASSIGN_OR_RETURN(auto certificate, BuildCertificate(spec, key.public_key(), nullptr, key));
  return Load(fleet, std::move(key), std::move(certificate));
}

absl::StatusOr<CommandAuthority> CommandAuthority::Load(std::string_view fleet, PrivateKey key,
                                                        Certificate certificate) {
  if (!certificate.Matches(key)) return Mismatch("the key is not the certificate's");
  // A file with a damaged private part still names the right public one.
  constexpr std::string_view kProbe = "probe";
  ASSIGN_OR_RETURN(const auto signature, key.Sign(kProbe));
  ASSIGN_OR_RETURN(const auto public_key, certificate.Key());
  if (!public_key.Verify(kProbe, signature)) return Mismatch("the key is damaged");
  const auto uri = certificate.Uri();
  if (X509_check_ca(certificate.get()) != 1 || !uri.ok() ||
      *uri != absl::StrCat("spiffe://", ToAbsl(fleet))) {
    return Mismatch(absl::StrCat("the certificate is not a command authority of ", ToAbsl(fleet)));
  }
  return CommandAuthority(std::string(fleet), std::move(key), std::move(certificate));
}

absl::StatusOr<CommandAuthority> CommandAuthority::Ensure(const std::string& folder,
                                                          std::string_view fleet, absl::Time now) {
  const std::string key_file = folder + "/command-ca.key";
  const std::string certificate_file = folder + "/command-ca.crt";
  const bool has_certificate = FileExists(certificate_file);
  if (has_certificate && !FileExists(key_file)) {
    return errors::HomeIncomplete(
        key_file, "its certificate exists",
        "Restore it from a backup: nodes accept only commands of this CA.");
  }
  ASSIGN_OR_RETURN(auto key, EnsureKeyFile(key_file));
  if (has_certificate) {
    ASSIGN_OR_RETURN(const auto chain, ReadChainFile(certificate_file));
    auto loaded = Load(fleet, std::move(key), chain.front());
    if (!loaded.ok()) return Annotate(loaded.status(), certificate_file);
    return loaded;
  }
  auto created = Create(fleet, std::move(key), now);
  if (!created.ok()) return created;
  RETURN_IF_ERROR(WriteFileAtomically(certificate_file, created->certificate().ToPem(), kPublic));
  return created;
}

absl::StatusOr<Certificate> CommandAuthority::Issue(const FleetName& name,
                                                    const SigningPublicKey& key,
                                                    absl::Time now) const {
  ASSIGN_OR_RETURN(auto uri, ToUri(Identity{fleet_, Widen(name)}));
  if (!MaySign(name)) {
    return errors::IssuerMayNotSign("the command authority", uri,
                                    "it is neither an operator nor a gateway");
  }
  CertificateSpec spec;
  spec.common_name = absl::StrCat("commands of ", uri);
  spec.uri = std::move(uri);
  spec.usage = Usage::kClient;
  spec.not_before = now - kBackdate;
  spec.not_after = std::min(now + kCommandValidity, certificate_.NotAfter());
  return BuildCertificate(spec, key.get(), &certificate_, key_);
}

}  // namespace muster
