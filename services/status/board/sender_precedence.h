// Which of several senders speaks for a pair.
#ifndef MUSTER_SERVICES_STATUS_BOARD_SENDER_PRECEDENCE_H_
#define MUSTER_SERVICES_STATUS_BOARD_SENDER_PRECEDENCE_H_

#include "services/status/heartbeats/sender.h"

namespace muster {

// Returns true if `sender` must not speak for a pair whose sender is `present`, or null: this one
// is live and its identity names the node, and that of `sender` does not. A credential for any node
// is shared by all nodes, so one of them could speak for another. Otherwise the last one speaks.
bool YieldsTo(const Sender* present, const Sender& sender);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_SENDER_PRECEDENCE_H_
