// Evidence about a silent sender, from the kernel's view of its connection.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_EVIDENCE_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_EVIDENCE_H_

#include <string_view>

#include "services/status/heartbeats/sender.h"
#include "services/status/heartbeats/tcp_view.h"

namespace muster {

// Returns the evidence after `state`, the kernel's view. `before`: the evidence until now.
// `connected`: the sender's stream is open. `unanswered`: while the sender was online, the kernel
// saw nothing acknowledged.
Evidence EvidenceFrom(const TcpState& state, Evidence before, bool connected, bool unanswered);

// The text of an event; empty for evidence that the kernel does not give.
std::string_view DescribeEvidence(Evidence evidence);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_EVIDENCE_H_
