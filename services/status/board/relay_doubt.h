// The runs whose status is in doubt because a relay is disconnected.
#ifndef MUSTER_SERVICES_STATUS_BOARD_RELAY_DOUBT_H_
#define MUSTER_SERVICES_STATUS_BOARD_RELAY_DOUBT_H_

#include <vector>

#include "services/status/board/pair_table.h"
#include "services/status/heartbeats/sender.h"

namespace muster {

// Returns a relay of `lost` that forwards, or may forward, the heartbeats of a pending pair, or
// null: of a node without a heartbeat it is not known to which relay it is attached. Reads the
// pending pairs once.
const RelayState* FindDoubted(const std::vector<const RelayState*>& lost, const PairTable& pairs);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_RELAY_DOUBT_H_
