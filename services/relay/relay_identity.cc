#include "services/relay/relay_identity.h"

#include <utility>
#include <variant>

#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/identity/identity.h"
#include "services/common/joining/member_file.h"

namespace muster {

absl::StatusOr<std::unique_ptr<RelayIdentity>> RelayIdentity::Open(const std::string& folder) {
  std::unique_ptr<RelayIdentity> made(new RelayIdentity());
  const auto member = ReadMemberFile(folder);
  if (member.ok()) {
    IdentityKeeper::Options options;
    options.folder = folder;
    auto keeper = IdentityKeeper::Open(std::move(options));
    if (!keeper.ok()) return keeper.status();
    made->keeper_ = *std::move(keeper);
  } else if (ReasonOf(member.status()) == "NOT_JOINED") {
    auto files = CertificateFiles::Open(folder + "/tls", folder + "/tls-published",
                                        ServiceRole::kRelay, SystemClock().Now());
    if (!files.ok()) return files.status();
    made->files_ = *std::move(files);
  } else {
    return member.status();
  }
  const Identity identity = made->trio().identity;
  const auto* service = std::get_if<ServiceIdentity>(&identity.name);
  if (service == nullptr || service->role != ServiceRole::kRelay) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "NO_RELAY_IDENTITY",
                     folder + " holds the identity of a node, not of a relay",
                     "Join as a relay: muster token create --relay NAME, then muster relay join.");
  }
  made->fleet_ = identity.fleet;
  made->name_ = service->name;
  auto uri = ToUri(identity);
  if (!uri.ok()) return uri.status();
  made->uri_ = *std::move(uri);
  return made;
}

const std::string& RelayIdentity::published_folder() const {
  return keeper_ != nullptr ? keeper_->published_folder() : files_->published_folder();
}

CertificateTrio RelayIdentity::trio() const {
  return keeper_ != nullptr ? keeper_->trio() : files_->trio();
}

std::vector<Certificate> RelayIdentity::roots() const {
  return keeper_ != nullptr ? keeper_->roots() : files_->roots();
}

std::vector<std::string> RelayIdentity::relay_targets() const {
  return keeper_ == nullptr ? std::vector<std::string>() : keeper_->member().relay_targets;
}

void RelayIdentity::Stop() {
  if (keeper_ != nullptr) keeper_->Stop();
}

}  // namespace muster
