// The identity that a client works with: fixed, or renewed by somebody while it works.
#ifndef MUSTER_SERVICES_CLIENT_SENDER_H_
#define MUSTER_SERVICES_CLIENT_SENDER_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/client/client.h"
#include "services/client/sender_identity.h"
#include "services/common/base/mutex.h"

namespace muster::client {

// Thread-safe.
class Sender {
 public:
  // From client_cert, client_key and fleet_ca_cert, or else from identity_folder. As
  // SenderIdentity::Load; INVALID_ARGUMENT (CONFIG_INVALID) also if the fleet's root is malformed.
  static absl::StatusOr<std::shared_ptr<const Sender>> Make(const Config& config, absl::Time now);

  // The newest; of a folder that is just being replaced the last that was whole. May block on the
  // disk. An error only if the newest is past.
  absl::StatusOr<SenderIdentity> Identity() const;

  // For connections to services of one of `roles` of the fleet: each uses what is newest.
  std::shared_ptr<grpc::ChannelCredentials> Credentials(std::vector<ServiceRole> roles) const;

  // When the identity ends: never for one that is renewed.
  absl::Time not_after() const;

 private:
  Sender(const Config& config, SenderIdentity identity)
      : folder_(config.identity_folder),
        fleet_ca_pem_(config.fleet_ca_cert),
        key_pem_(config.client_key),
        identity_(std::move(identity)) {}

  const std::string folder_;
  const std::string fleet_ca_pem_;  // these two without a folder
  const std::string key_pem_;
  mutable Mutex mutex_;
  mutable SenderIdentity identity_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_SENDER_H_
