// The identity of a client: fixed, or renewed by another program.
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
  // Loads client_cert, client_key and fleet_ca_cert, or else identity_folder. Fails as
  // SenderIdentity::Load does, and with INVALID_ARGUMENT (INVALID_CONFIG) if the fleet's root is
  // malformed.
  static absl::StatusOr<std::shared_ptr<const Sender>> Make(const Config& config, absl::Time now);

  // Returns the newest identity; while a folder is being replaced, the last complete one. May block
  // on the disk. Fails only if the newest has expired.
  absl::StatusOr<SenderIdentity> Identity() const;

  // Returns credentials for connections to services of one of `roles` of the fleet; each connection
  // uses the newest identity.
  std::shared_ptr<grpc::ChannelCredentials> Credentials(std::vector<ServiceRole> roles) const;

  // Returns the expiry of the identity: infinite for one that is renewed.
  absl::Time not_after() const;

 private:
  Sender(const Config& config, SenderIdentity identity)
      : folder_(config.identity_folder),
        fleet_ca_pem_(config.fleet_ca_cert),
        key_pem_(config.client_key),
        identity_(std::move(identity)) {}

  const std::string folder_;
  const std::string fleet_ca_pem_;  // these two only without a folder
  const std::string key_pem_;
  mutable Mutex mutex_;
  mutable SenderIdentity identity_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_SENDER_H_
