#include "services/common/identity/authority.h"

#include <openssl/x509v3.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/certificate_builder.h"

namespace muster {
namespace {

constexpr absl::Duration kRootValidity = absl::Hours(24 * 365 * 20);
constexpr absl::Duration kIntermediateValidity = absl::Hours(24 * 365 * 5);
constexpr absl::Duration kCredentialMargin = absl::Hours(1);
constexpr absl::Duration kViewerMargin = absl::Hours(24);

// Returns the one URI of a CA: its trust domain, which is not an identity.
std::string DomainUri(std::string_view host) { return absl::StrCat("spiffe://", ToAbsl(host)); }

// Checks that key and certificate belong together and are the CA of `host`.
absl::Status CheckAuthority(std::string_view what, std::string_view host, const PrivateKey& key,
                            const Certificate& certificate) {
  if (!certificate.Matches(key))
    return errors::AuthorityMismatch(what, "the key does not belong to the certificate");
  if (X509_check_ca(certificate.get()) != 1) {
    return errors::AuthorityMismatch(what, "the certificate is not a CA certificate");
  }
  const auto uri = certificate.Uri();
  if (!uri.ok() || *uri != DomainUri(host)) {
    return errors::AuthorityMismatch(what,
                                     absl::StrCat("the certificate is not one of ", ToAbsl(host)));
  }
  return absl::OkStatus();
}

absl::Status CheckSigned(std::string_view what, const Certificate& certificate,
                         const Certificate& issuer) {
  if (X509_check_issued(issuer.get(), certificate.get()) == X509_V_OK &&
      X509_verify(certificate.get(), X509_get0_pubkey(issuer.get())) == 1) {
    return absl::OkStatus();
  }
  return errors::AuthorityMismatch(what, "the certificate was not signed by its issuer");
}

CertificateSpec AuthoritySpec(std::string name, std::string_view host, int path_length,
                              absl::Time now, absl::Time not_after) {
  CertificateSpec spec;
  spec.common_name = std::move(name);
  spec.uri = DomainUri(host);
  spec.not_before = now - kBackdate;
  spec.not_after = not_after;
  spec.path_length = path_length;
  return spec;
}

// Returns the common name, which certificate viewers show. No name of a CA begins with the same
// word.
std::string LeafLabel(const Identity::Name& name) {
  if (const auto* s = std::get_if<ServiceIdentity>(&name)) {
    return absl::StrCat(ToAbsl(ServiceRoleName(s->role)), " ", s->name);
  }
  if (const auto* u = std::get_if<UserIdentity>(&name)) return absl::StrCat("user ", u->name);
  if (const auto* n = std::get_if<NodeIdentity>(&name)) return absl::StrCat("node ", n->name);
  if (const auto* r = std::get_if<RunNodeIdentity>(&name)) {
    return absl::StrCat("plugin ", r->plugin, " node ", r->node);
  }
  if (const auto* r = std::get_if<RunPluginIdentity>(&name)) {
    return absl::StrCat("plugin ", r->plugin, " any node");
  }
  if (const auto* r = std::get_if<RunViewerIdentity>(&name)) {
    return absl::StrCat("viewer of run ", r->run);
  }
  return absl::StrCat("listener of run ", std::get<RunListenerIdentity>(name).run);
}

Usage UsageOf(const Identity::Name& name) {
  if (std::holds_alternative<ServiceIdentity>(name)) return Usage::kClientAndServer;
  if (std::holds_alternative<RunListenerIdentity>(name)) return Usage::kServer;
  return Usage::kClient;
}

absl::StatusOr<CertificateSpec> LeafSpec(const Identity& identity,
                                         const std::vector<std::string>& hosts, absl::Time now,
                                         absl::Time not_after) {
  ASSIGN_OR_RETURN(auto uri, ToUri(identity));
  CertificateSpec spec;
  spec.common_name = LeafLabel(identity.name);
  spec.uri = std::move(uri);
  spec.usage = UsageOf(identity.name);
  spec.hosts = hosts;
  spec.not_before = now - kBackdate;
  spec.not_after = not_after;
  if (spec.usage == Usage::kClient && !hosts.empty()) {
    return errors::IssuerMayNotSign("an authority", spec.uri,
                                    "a client certificate names no hosts");
  }
  return spec;
}

Identity::Name Widen(const auto& name) {
  return std::visit([](const auto& n) -> Identity::Name { return n; }, name);
}

}  // namespace

absl::Time RenewAt(const Certificate& certificate) {
  const absl::Time issued = certificate.NotBefore() + kBackdate;
  return issued + (certificate.NotAfter() - issued) / 2;
}

absl::Time RunCredentialsEnd(absl::Time deadline, absl::Duration seal_grace) {
  return deadline + seal_grace + kCredentialMargin;
}

absl::Time RunViewersEnd(absl::Time deadline) { return deadline + kViewerMargin; }

absl::Time RunAuthorityEnd(absl::Time deadline, absl::Duration seal_grace) {
  return std::max(RunCredentialsEnd(deadline, seal_grace), RunViewersEnd(deadline));
}

absl::StatusOr<RunAuthority> RunAuthority::Load(std::string_view fleet, std::string_view run,
                                                PrivateKey key, Certificate fleet_signed,
                                                Certificate self_signed) {
  const std::string what = absl::StrCat("the CA of run ", ToAbsl(run));
  for (const Certificate& certificate : {fleet_signed, self_signed}) {
    RETURN_IF_ERROR(CheckAuthority(what, RunHost(run, fleet), key, certificate));
  }
  return RunAuthority(std::string(fleet), std::string(run), std::move(key), std::move(fleet_signed),
                      std::move(self_signed));
}

absl::StatusOr<Certificate> RunAuthority::Issue(const RunName& name, const PublicKey& key,
                                                const std::vector<std::string>& hosts,
                                                absl::Time now, absl::Time not_after) const {
  const Identity identity{fleet_, Widen(name)};
  ASSIGN_OR_RETURN(auto spec, LeafSpec(identity, hosts, now, std::min(not_after, NotAfter())));
  if (RunOf(identity) != run_) {
    return errors::IssuerMayNotSign(absl::StrCat("the CA of run ", run_), spec.uri,
                                    "it belongs to another run");
  }
  return BuildCertificate(spec, key, &self_signed_, key_);
}

absl::StatusOr<Intermediate> Intermediate::Load(std::string_view fleet, PrivateKey key,
                                                Certificate certificate, Certificate root) {
  constexpr std::string_view kWhat = "the fleet's intermediate CA";
  RETURN_IF_ERROR(CheckAuthority(kWhat, fleet, key, certificate));
  RETURN_IF_ERROR(CheckSigned(kWhat, certificate, root));
  return Intermediate(std::string(fleet), std::move(key), std::move(certificate), std::move(root));
}

absl::StatusOr<Certificate> Intermediate::Issue(const FleetName& name, const PublicKey& key,
                                                const std::vector<std::string>& hosts,
                                                absl::Time now, absl::Time not_after) const {
  ASSIGN_OR_RETURN(auto spec, LeafSpec(Identity{fleet_, Widen(name)}, hosts, now,
                                       std::min(not_after, certificate_.NotAfter())));
  return BuildCertificate(spec, key, &certificate_, key_);
}

absl::StatusOr<RunAuthority> Intermediate::CreateRunAuthority(std::string_view run, absl::Time now,
                                                              absl::Time not_after) const {
  if (!IsRunId(run)) {
    return errors::InvalidRunId(absl::CHexEscape(ToAbsl(run.substr(0, 64))));
  }
  if (not_after > certificate_.NotAfter()) {
    return errors::AuthorityEndsEarlier(certificate_.NotAfter());
  }
  ASSIGN_OR_RETURN(auto key, PrivateKey::Generate());
  const std::string host = RunHost(run, fleet_);
  CertificateSpec spec =
      AuthoritySpec(absl::StrCat("Muster run ", ToAbsl(run)), host, 0, now, not_after);
  ASSIGN_OR_RETURN(auto self_signed, BuildCertificate(spec, key.public_key(), nullptr, key));
  spec.permitted_uri_host = host;
  ASSIGN_OR_RETURN(auto fleet_signed,
                   BuildCertificate(spec, key.public_key(), &certificate_, key_));
  return RunAuthority::Load(fleet_, run, std::move(key), std::move(fleet_signed),
                            std::move(self_signed));
}

absl::StatusOr<FleetRoot> FleetRoot::Create(std::string_view fleet, PrivateKey key,
                                            absl::Time now) {
  RETURN_IF_ERROR(CheckFleet(fleet));
  ASSIGN_OR_RETURN(auto certificate,
                   BuildCertificate(AuthoritySpec(absl::StrCat("Muster root of ", ToAbsl(fleet)),
                                                  fleet, 2, now, now + kRootValidity),
                                    key.public_key(), nullptr, key));
  return Load(fleet, std::move(key), std::move(certificate));
}

absl::StatusOr<FleetRoot> FleetRoot::Load(std::string_view fleet, PrivateKey key,
                                          Certificate certificate) {
  constexpr std::string_view kWhat = "the fleet's root";
  RETURN_IF_ERROR(CheckAuthority(kWhat, fleet, key, certificate));
  RETURN_IF_ERROR(CheckSigned(kWhat, certificate, certificate));
  return FleetRoot(std::string(fleet), std::move(key), std::move(certificate));
}

absl::StatusOr<Certificate> FleetRoot::SignIntermediate(const PublicKey& key,
                                                        absl::Time now) const {
  const absl::Time end = std::min(now + kIntermediateValidity, certificate_.NotAfter());
  return BuildCertificate(
      AuthoritySpec(absl::StrCat("Muster intermediate of ", fleet_), fleet_, 1, now, end), key,
      &certificate_, key_);
}

}  // namespace muster
