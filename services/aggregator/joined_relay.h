// Calls that only the root relay may make.
#ifndef MUSTER_SERVICES_AGGREGATOR_JOINED_RELAY_H_
#define MUSTER_SERVICES_AGGREGATOR_JOINED_RELAY_H_

#include "absl/status/status.h"
#include "services/common/rpc/call.h"

namespace muster {

// Returns OK unless the caller is a joined relay: PERMISSION_DENIED (NOT_YOURS). A joined relay
// acts only for its descendants; the root relay is a service of the fleet.
absl::Status RefuseJoinedRelay(const Call& call);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_JOINED_RELAY_H_
