// The proof with which a relay delivers for a node that has detached: the signature of the node.
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
#include "services/common/identity/rpc_authorization.h"
#include "services/common/store/records.h"

namespace muster {

// The longest time for which a relay may hold a result: the time to live of a spool, and one day to
// report what expired.
inline constexpr absl::Duration kSpooledAtMost = absl::Hours(8 * 24);

// Thread-safe.
class SpooledProofs {
 public:
  // Signatures have to lead to `root`.
  SpooledProofs(std::string fleet, Certificate root, const Clock& clock,
                std::function<bool(const Caller&)> is_revoked)
      : fleet_(std::move(fleet)),
        root_(std::move(root)),
        clock_(clock),
        is_revoked_(std::move(is_revoked)) {}

  // Returns OK if `relay` may deliver `upload`: a node that is not revoked signed a delivery with
  // its key and attempt. Then records in `upload` that the node delivers it through the relay.
  // SIGNATURE_REQUIRED, INVALID_SIGNATURE, PROOF_TOO_OLD, REVOKED.
  absl::Status Check(const v1::SpooledProof& proof, const Caller& relay,
                     UploadRecord* upload) const;

 private:
  const std::string fleet_;
  const Certificate root_;
  const Clock& clock_;
  const std::function<bool(const Caller&)> is_revoked_;
};

// Returns the time at which the relay accepted the result.
absl::Time AcceptTime(const v1::SpooledProof& proof);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_UPLOADS_SPOOLED_PROOF_H_
