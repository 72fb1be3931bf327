// What a relay shows when it delivers for a node that is not there any more: the node's signature.
#ifndef MUSTER_SERVICES_AGGREGATOR_UPLOADS_SPOOLED_PROOF_H_
#define MUSTER_SERVICES_AGGREGATOR_UPLOADS_SPOOLED_PROOF_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/results.pb.h"
#include "services/common/base/clock.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/policy.h"
#include "services/common/store/records.h"

namespace muster {

// How long a relay may keep what it took: longer than any spool's time to live, by a day in which
// it tells of what expired.
inline constexpr absl::Duration kSpooledAtMost = absl::Hours(8 * 24);

// Thread-safe.
class SpooledProofs {
 public:
  // `root` is what signatures have to lead to.
  SpooledProofs(std::string fleet, Certificate root, const Clock& clock,
                std::function<bool(const Caller&)> is_revoked)
      : fleet_(std::move(fleet)),
        root_(std::move(root)),
        clock_(clock),
        is_revoked_(std::move(is_revoked)) {}

  // Whether `relay` may deliver `upload`: a node that is not revoked signed a delivery with its key
  // and attempt. `upload` then is delivered by that node, vouched for by the relay.
  // SIGNATURE_REQUIRED, INVALID_SIGNATURE, PROOF_TOO_OLD, REVOKED.
  absl::Status Check(const v1::SpooledProof& proof, const Caller& relay,
                     UploadRecord* upload) const;

 private:
  const std::string fleet_;
  const Certificate root_;
  const Clock& clock_;
  const std::function<bool(const Caller&)> is_revoked_;
};

// When the relay had taken what it proves.
absl::Time AcceptTime(const v1::SpooledProof& proof);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_UPLOADS_SPOOLED_PROOF_H_
