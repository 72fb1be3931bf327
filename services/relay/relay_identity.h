// The identity of a relay: created by `muster up` for the root relay, or joined with a token.
#ifndef MUSTER_SERVICES_RELAY_RELAY_IDENTITY_H_
#define MUSTER_SERVICES_RELAY_RELAY_IDENTITY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/executor.h"
#include "services/common/base/timers.h"
#include "services/common/identity/certificate_files.h"
#include "services/common/joining/identity_keeper.h"

namespace muster {

// Thread-safe.
class RelayIdentity {
 public:
  // Reads tls/ in `folder`. With relay.json, the relay has joined, and the identity is renewed here
  // by `timers` and `executor`, which outlive it. Errors as CertificateFiles::Open and
  // IdentityKeeper::Open.
  static absl::StatusOr<std::unique_ptr<RelayIdentity>> Open(const std::string& folder,
                                                             TimerService& timers,
                                                             Executor& executor);

  // The folder with key.pem, cert.pem and ca.pem, which gRPC watches. The path does not change.
  const std::string& published_folder() const;
  CertificateTrio trio() const;
  std::vector<Certificate> roots() const;

  const std::string& fleet() const { return fleet_; }
  const std::string& uri() const { return uri_; }
  const std::string& name() const { return name_; }

  // Returns whether the relay has joined; if so, it is attached to a parent.
  bool joined() const { return keeper_ != nullptr; }
  // The addresses of its parents, from the join.
  std::vector<std::string> relay_targets() const;

  // The files of the root relay, for the renewal by the aggregator; null for a relay that joined.
  CertificateFiles* files() { return files_.get(); }
  void Stop();

 private:
  RelayIdentity() = default;

  std::unique_ptr<CertificateFiles> files_;  // one of the two
  std::unique_ptr<IdentityKeeper> keeper_;
  std::string fleet_;
  std::string uri_;
  std::string name_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_RELAY_IDENTITY_H_
