#include "services/common/identity/authority_files.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/pem_files.h"

namespace muster {
namespace {

constexpr std::string_view kScheme = "spiffe://";
constexpr unsigned kPublic = 0644;

absl::StatusOr<Certificate> ReadCertificateFile(const std::string& path) {
  ASSIGN_OR_RETURN(auto chain, ReadChainFile(path));
  return chain.front();
}

// Returns the path of the aggregator's copy of the root certificate, which remains if root/ is
// taken offline.
std::string PinnedRoot(const Home& home) {
  return home.TlsFolder(ServiceRole::kAggregator) + "/ca.pem";
}

absl::Status RootKeyOffline(const Home& home, std::string_view why) {
  return errors::RootKeyOffline(home.RootKey(), why);
}

absl::StatusOr<Certificate> SignIntermediate(const Home& home, const FleetRoot& root,
                                             const PrivateKey& key, absl::Time now) {
  auto certificate = root.SignIntermediate(key.public_key(), now);
  if (!certificate.ok()) return certificate;
  RETURN_IF_ERROR(
      WriteFileAtomically(home.IntermediateCertificate(), certificate->ToPem(), kPublic));
  return certificate;
}

// Loads the intermediate with the one of `roots` that signed it.
absl::StatusOr<Intermediate> LoadUnder(std::string_view fleet, const PrivateKey& key,
                                       const Certificate& certificate,
                                       const std::vector<Certificate>& roots) {
  absl::StatusOr<Intermediate> loaded = absl::NotFoundError("no root");
  for (const Certificate& root : roots) {
    loaded = Intermediate::Load(fleet, key, certificate, root);
    if (loaded.ok()) return loaded;
  }
  return loaded;
}

}  // namespace

absl::StatusOr<Intermediate> LoadIntermediate(const std::string& aggregator_folder) {
  ASSIGN_OR_RETURN(const auto key, ReadKeyFile(aggregator_folder + "/intermediate.key"));
  ASSIGN_OR_RETURN(const auto certificate,
                   ReadCertificateFile(aggregator_folder + "/intermediate.crt"));
  ASSIGN_OR_RETURN(const auto roots, ReadChainFile(aggregator_folder + "/tls/ca.pem"));
  const auto uri = certificate.Uri();
  if (!uri.ok()) return Annotate(uri.status(), aggregator_folder + "/intermediate.crt");
  const std::string_view fleet =
      std::string_view(*uri).substr(uri->starts_with(kScheme) ? kScheme.size() : uri->size());
  RETURN_IF_ERROR(CheckFleet(fleet));
  auto loaded = LoadUnder(fleet, key, certificate, roots);
  if (!loaded.ok()) return Annotate(loaded.status(), aggregator_folder);
  return loaded;
}

absl::StatusOr<RootFiles> EnsureRoot(const Home& home, std::string_view fleet, absl::Time now,
                                     std::vector<std::string>& done) {
  const bool has_key = FileExists(home.RootKey());
  const bool has_certificate = FileExists(home.RootCertificate());
  // Each of these files was created after a root.
  const bool in_use = FileExists(home.IntermediateKey()) ||
                      FileExists(home.IntermediateCertificate()) || FileExists(PinnedRoot(home));
  if (!has_key && (has_certificate || in_use)) {
    const std::string path = has_certificate ? home.RootCertificate() : PinnedRoot(home);
    if (!FileExists(path)) {
      return errors::HomeIncomplete(home.RootCertificate(), "the fleet is in use",
                                    "Restore it from a backup.");
    }
    ASSIGN_OR_RETURN(auto certificate, ReadCertificateFile(path));
    return RootFiles{std::move(certificate), std::nullopt};
  }
  if (!has_certificate && in_use) {
    return errors::HomeIncomplete(
        home.RootCertificate(), "the fleet is in use",
        absl::StrCat("Restore it from a backup; ", PinnedRoot(home), " is a copy of it."));
  }
  ASSIGN_OR_RETURN(auto key, EnsureKeyFile(home.RootKey()));
  if (has_certificate) {
    ASSIGN_OR_RETURN(auto certificate, ReadCertificateFile(home.RootCertificate()));
    auto root = FleetRoot::Load(fleet, std::move(key), certificate);
    if (!root.ok()) return Annotate(root.status(), home.RootFolder());
    return RootFiles{std::move(certificate), *std::move(root)};
  }
  ASSIGN_OR_RETURN(auto root, FleetRoot::Create(fleet, std::move(key), now));
  RETURN_IF_ERROR(WriteFileAtomically(home.RootCertificate(), root.certificate().ToPem(), kPublic));
  done.push_back(
      absl::StrCat("created the root CA of fleet ", ToAbsl(fleet), " in ", home.RootFolder()));
  return RootFiles{root.certificate(), root};
}

absl::StatusOr<Intermediate> EnsureIntermediate(const Home& home, const RootFiles& root,
                                                std::string_view fleet, absl::Time now,
                                                std::vector<std::string>& done) {
  const bool has_certificate = FileExists(home.IntermediateCertificate());
  if (has_certificate && !FileExists(home.IntermediateKey())) {
    return errors::HomeIncomplete(
        home.IntermediateKey(), "its certificate exists",
        absl::StrCat(
            "Restore it from a backup, or remove ", home.IntermediateCertificate(),
            " to create a new intermediate CA (the root key is required); certificates of the "
            "old one stay valid."));
  }
  if (!has_certificate && !root.root)
    return RootKeyOffline(home, "the intermediate CA does not exist yet");
  ASSIGN_OR_RETURN(const auto key, EnsureKeyFile(home.IntermediateKey()));
  ASSIGN_OR_RETURN(Certificate certificate,
                   has_certificate ? ReadCertificateFile(home.IntermediateCertificate())
                                   : SignIntermediate(home, *root.root, key, now));
  if (!has_certificate) done.push_back("created the intermediate CA");
  if (now >= RenewAt(certificate) && root.root) {
    ASSIGN_OR_RETURN(certificate, SignIntermediate(home, *root.root, key, now));
    done.push_back("renewed the intermediate CA");
  }
  if (now >= certificate.NotAfter()) return RootKeyOffline(home, "the intermediate CA has expired");
  auto loaded = Intermediate::Load(fleet, key, certificate, root.certificate);
  if (!loaded.ok()) return Annotate(loaded.status(), home.IntermediateCertificate());
  return loaded;
}

}  // namespace muster
