#include "services/relay/relay_identity.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>

#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/joining.h"
#include "services/common/identity/identity.h"
#include "services/common/joining/member_file.h"

namespace muster {

absl::StatusOr<std::unique_ptr<RelayIdentity>> RelayIdentity::Open(const std::string& folder,
                                                                   TimerService& timers,
                                                                   Executor& executor) {
  std::unique_ptr<RelayIdentity> made(new RelayIdentity());
  const auto member = ReadMemberFile(folder);
  std::error_code ignored;
  if (member.ok()) {
    IdentityKeeper::Options options;
    options.folder = folder;
    options.timers = &timers;
    options.executor = &executor;
    ASSIGN_OR_RETURN(made->keeper_, IdentityKeeper::Open(std::move(options)));
  } else if (ReasonOf(member.status()) == "NOT_JOINED" &&
             std::filesystem::exists(folder + "/tls/cert.pem", ignored)) {
    ASSIGN_OR_RETURN(made->files_,
                     CertificateFiles::Open(folder + "/tls", folder + "/tls-published",
                                            ServiceRole::kRelay, SystemClock().Now()));
  } else {
    return member.status();
  }
  const Identity identity = made->trio().identity;
  const auto* service = std::get_if<ServiceIdentity>(&identity.name);
  if (service == nullptr || service->role != ServiceRole::kRelay) {
    return errors::NoRelayIdentity(folder, "contains the identity of a node, not of a relay");
  }
  made->fleet_ = identity.fleet;
  made->name_ = service->name;
  ASSIGN_OR_RETURN(made->uri_, ToUri(identity));
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
  if (keeper_ == nullptr) return {};
  const MemberFile member = keeper_->member();
  return TargetsByLink(member.relay_targets, member.link);
}

void RelayIdentity::Stop() {
  if (keeper_ != nullptr) keeper_->Stop();
}

}  // namespace muster
