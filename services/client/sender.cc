#include "services/client/sender.h"

#include <utility>

#include "absl/time/clock.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/client.h"
#include "services/common/identity/certificate.h"
#include "services/common/rpc/channel.h"

namespace muster::client {
namespace {

absl::StatusOr<SenderIdentity> LoadFolder(const std::string& folder, absl::Time now) {
  const auto key = ReadSecretFile(folder + "/key.pem");
  if (!key.ok()) return errors::ConfigInvalid("identity_folder", "", ToStd(key.status().message()));
  const auto chain = ReadFileBounded(folder + "/cert.pem", kMaxSecretFile);
  if (!chain.ok())
    return errors::ConfigInvalid("identity_folder", "", ToStd(chain.status().message()));
  return SenderIdentity::Load(*chain, *key, now);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Sender>> Sender::Make(const Config& config, absl::Time now) {
  ASSIGN_OR_RETURN(auto identity,
                   config.identity_folder.empty()
                       ? SenderIdentity::Load(config.client_cert, config.client_key, now)
                       : LoadFolder(config.identity_folder, now));
  if (config.identity_folder.empty()) {
    if (auto ca = ParseChain(config.fleet_ca_cert); !ca.ok()) {
      return errors::ConfigInvalid("configuration", "fleet_ca_cert", ToStd(ca.status().message()));
    }
  }
  return std::shared_ptr<const Sender>(new Sender(config, std::move(identity)));
}

absl::StatusOr<SenderIdentity> Sender::Identity() const {
  const absl::Time now = absl::Now();
  MutexLock lock(mutex_);
  if (!folder_.empty()) {
    // A folder may be replaced between two reads: key and certificate then do not match.
    auto newest = LoadFolder(folder_, now);
    if (newest.ok()) identity_ = *std::move(newest);
  }
  if (identity_.not_after() <= now) return errors::CertificateEnded(identity_.not_after());
  return identity_;
}

std::shared_ptr<grpc::ChannelCredentials> Sender::Credentials(
    std::vector<ServiceRole> roles) const {
  MutexLock lock(mutex_);
  const std::string& fleet = identity_.identity().fleet;
  if (!folder_.empty()) {
    return MakeChannelCredentials(ChannelIdentityFolder{fleet, folder_}, std::move(roles));
  }
  return MakeChannelCredentials(
      ChannelIdentity{fleet, fleet_ca_pem_, identity_.chain_pem(), key_pem_}, std::move(roles));
}

absl::Time Sender::not_after() const {
  MutexLock lock(mutex_);
  return folder_.empty() ? identity_.not_after() : absl::InfiniteFuture();
}

}  // namespace muster::client
