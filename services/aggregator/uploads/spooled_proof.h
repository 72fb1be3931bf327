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
#include "services/common/store/state_store.h"

namespace muster {

// The longest time for which a relay may hold a result: the time to live of a spool, and one day to
// report what expired.
inline constexpr absl::Duration kSpooledAtMost = absl::Hours(8 * 24);

// Thread-safe.
class SpooledProofs {
 public:
  // Signatures have to lead to `root`. `store` has the enrolled nodes.
  SpooledProofs(std::string fleet, Certificate root, StateStore& store, const Clock& clock,
                std::function<bool(const Caller&)> is_revoked)
      : fleet_(std::move(fleet)),
        root_(std::move(root)),
        store_(store),
        clock_(clock),
        is_revoked_(std::move(is_revoked)) {}

  // Returns OK if `relay` may deliver `upload`: a node that is not revoked signed a delivery with
  // its key and attempt. The relay names the time of the signature; of a certificate that has
  // expired meanwhile, the node must still be enrolled, and not have joined again. Then records in
  // `upload` that the node delivers it through the relay. May wait for the store.
  // SIGNATURE_REQUIRED, INVALID_SIGNATURE, PROOF_TOO_OLD, REVOKED.
  absl::Status Check(const v1::SpooledProof& proof, const Caller& relay,
                     UploadRecord* upload) const;

 private:
  absl::Status CheckEnrolled(const std::string& name, const Certificate& leaf) const;

  const std::string fleet_;
  const Certificate root_;
  StateStore& store_;
  const Clock& clock_;
  const std::function<bool(const Caller&)> is_revoked_;
};

// Returns the time at which the relay accepted the result.
absl::Time AcceptTime(const v1::SpooledProof& proof);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_UPLOADS_SPOOLED_PROOF_H_
