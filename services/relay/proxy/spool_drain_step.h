// The delivery of one result of the spool, and what follows from its outcome.
#ifndef MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_STEP_H_
#define MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_STEP_H_

#include <stop_token>

#include "absl/status/status.h"
#include "services/relay/proxy/spool_drain_peer.h"
#include "services/relay/spool/spool.h"

namespace muster {

enum class DrainStep {
  kNothingDue,
  kFinished,         // committed, refused, expired or lost: the result left the spool
  kRequeued,         // its node waits for the delay that the peer asked for
  kPeerUnavailable,  // likewise, and other results would fail in the same way
};

// Delivers the next result, or its error if it expired. Waits for disk and network.
DrainStep DeliverNext(Spool& spool, SpoolDrainPeer& peer, const std::stop_token& stop);

// Returns whether the error is a verdict on the result, so that another try cannot succeed. Errors
// about this relay may pass.
bool IsFinalRefusal(const absl::Status& status);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_STEP_H_
