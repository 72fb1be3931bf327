// Identities for simulated nodes.
#ifndef MUSTER_TESTING_LOAD_ENROLMENT_H_
#define MUSTER_TESTING_LOAD_ENROLMENT_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/key.h"
#include "services/common/rpc/channel.h"

namespace muster::load {

// A node as it is registered after enrolment.
struct EnrolledNode {
  PrivateKey key;
  std::string uri;
  ChannelIdentity identity;
};

// Issues certificates with the key of the fleet's intermediate CA, as the aggregator does when
// nodes enrol one by one. Not thread-safe.
class Enrolment {
 public:
  // `home` is the fleet's folder, with that key.
  static absl::StatusOr<Enrolment> Open(const std::string& home, const std::string& fleet);

  // Issues a certificate for 24 hours.
  absl::StatusOr<EnrolledNode> Enrol(const std::string& name) const;

 private:
  Enrolment(std::string fleet, std::string root_pem, Intermediate intermediate)
      : fleet_(std::move(fleet)),
        root_pem_(std::move(root_pem)),
        intermediate_(std::move(intermediate)) {}

  std::string fleet_;
  std::string root_pem_;
  Intermediate intermediate_;
};

}  // namespace muster::load

#endif  // MUSTER_TESTING_LOAD_ENROLMENT_H_
