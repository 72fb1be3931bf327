#include "testing/load/enrolment.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "services/common/base/secret_file.h"
#include "services/common/identity/home.h"
#include "services/common/identity/identity.h"

namespace muster::load {

absl::StatusOr<Enrolment> Enrolment::Open(const std::string& folder, const std::string& fleet) {
  const Home home(folder);
  const auto root_pem = ReadFileBounded(home.RootCertificate(), kMaxSecretFile);
  if (!root_pem.ok()) return root_pem.status();
  const auto key_pem = ReadSecretFile(home.IntermediateKey());
  if (!key_pem.ok()) return key_pem.status();
  auto key = PrivateKey::FromPem(*key_pem);
  if (!key.ok()) return key.status();
  const auto pem = ReadFileBounded(home.IntermediateCertificate(), kMaxSecretFile);
  if (!pem.ok()) return pem.status();
  auto certificate = Certificate::FromPem(*pem);
  auto root = Certificate::FromPem(*root_pem);
  if (!certificate.ok()) return certificate.status();
  if (!root.ok()) return root.status();
  auto intermediate =
      Intermediate::Load(fleet, *std::move(key), *std::move(certificate), *std::move(root));
  if (!intermediate.ok()) return intermediate.status();
  return Enrolment(fleet, *root_pem, *std::move(intermediate));
}

absl::StatusOr<EnrolledNode> Enrolment::Enrol(const std::string& name) const {
  auto key = PrivateKey::Generate();
  if (!key.ok()) return key.status();
  const auto leaf =
      intermediate_.Issue(NodeIdentity{name}, key->public_key(), {}, absl::Now() - absl::Minutes(1),
                          absl::Now() + absl::Hours(24));
  if (!leaf.ok()) return leaf.status();
  auto uri = leaf->Uri();
  if (!uri.ok()) return uri.status();
  const auto pem = key->ToPkcs8Pem();
  if (!pem.ok()) return pem.status();
  ChannelIdentity identity{fleet_, root_pem_,
                           absl::StrCat(leaf->ToPem(), intermediate_.certificate().ToPem()),
                           std::string(pem->view())};
  return EnrolledNode{*std::move(key), *std::move(uri), std::move(identity)};
}

}  // namespace muster::load
