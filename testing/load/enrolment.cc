#include "testing/load/enrolment.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/home.h"
#include "services/common/identity/identity.h"

namespace muster::load {

absl::StatusOr<Enrolment> Enrolment::Open(const std::string& folder, const std::string& fleet) {
  const Home home(folder);
  ASSIGN_OR_RETURN(const auto root_pem, ReadFileBounded(home.RootCertificate(), kMaxSecretFile));
  ASSIGN_OR_RETURN(const auto key_pem, ReadSecretFile(home.IntermediateKey()));
  ASSIGN_OR_RETURN(auto key, PrivateKey::FromPem(key_pem));
  ASSIGN_OR_RETURN(const auto pem, ReadFileBounded(home.IntermediateCertificate(), kMaxSecretFile));
  auto certificate = Certificate::FromPem(pem);
  auto root = Certificate::FromPem(root_pem);
  if (!certificate.ok()) return certificate.status();
  if (!root.ok()) return root.status();
  ASSIGN_OR_RETURN(
      auto intermediate,
      Intermediate::Load(fleet, std::move(key), *std::move(certificate), *std::move(root)));
  return Enrolment(fleet, root_pem, std::move(intermediate));
}

absl::StatusOr<EnrolledNode> Enrolment::Enrol(const std::string& name) const {
  ASSIGN_OR_RETURN(auto key, PrivateKey::Generate());
  ASSIGN_OR_RETURN(const auto leaf, intermediate_.Issue(NodeIdentity{name}, key.public_key(), {},
                                                        absl::Now() - absl::Minutes(1),
                                                        absl::Now() + absl::Hours(24)));
  ASSIGN_OR_RETURN(auto uri, leaf.Uri());
  ASSIGN_OR_RETURN(const auto pem, key.ToPkcs8Pem());
  ChannelIdentity identity{fleet_, root_pem_,
                           absl::StrCat(leaf.ToPem(), intermediate_.certificate().ToPem()),
                           std::string(pem.view())};
  return EnrolledNode{std::move(key), std::move(uri), std::move(identity)};
}

}  // namespace muster::load
