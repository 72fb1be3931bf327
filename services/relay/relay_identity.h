// Who a relay is: made at the centre by `muster up`, or joined with a token.
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
  // From `folder`, which holds tls/ and, of a relay that joined, relay.json: then it is kept
  // current here, with `timers` and `executor`, which outlive it. As CertificateFiles::Open and
  // IdentityKeeper::Open.
  static absl::StatusOr<std::unique_ptr<RelayIdentity>> Open(const std::string& folder,
                                                             TimerService& timers,
                                                             Executor& executor);

  // Where gRPC has to watch key.pem, cert.pem and ca.pem. The same path for life.
  const std::string& published_folder() const;
  CertificateTrio trio() const;
  std::vector<Certificate> roots() const;

  const std::string& fleet() const { return fleet_; }
  const std::string& uri() const { return uri_; }
  const std::string& name() const { return name_; }

  // Whether it joined: then it hangs below others.
  bool joined() const { return keeper_ != nullptr; }
  // Where it was told to hang.
  std::vector<std::string> relay_targets() const;

  // Of one at the centre, to be renewed by asking the aggregator; null of one that joined.
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
