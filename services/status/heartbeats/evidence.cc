#include "services/status/heartbeats/evidence.h"

namespace muster {

Evidence EvidenceFrom(const TcpState& state, Evidence before, bool connected, bool unanswered) {
  const bool acknowledged = state.sent == TcpState::Sent::kAcknowledged;
  const bool unacknowledged = state.sent == TcpState::Sent::kUnacknowledged;
  if (connected) {
    if (unacknowledged) return Evidence::kUnacknowledged;
    return acknowledged ? Evidence::kAcknowledging : before;
  }
  if (state.ended_here) {
    return acknowledged ? Evidence::kAcknowledging : Evidence::kUnacknowledged;
  }
  if (before == Evidence::kUnacknowledged) return before;
  // The kernel drops a connection whose far end is silent: that is no crash.
  return unanswered ? Evidence::kUnacknowledged : Evidence::kClosed;
}

std::string_view DescribeEvidence(Evidence evidence) {
  switch (evidence) {
    case Evidence::kClosed:
      return "its connection was closed without a goodbye";
    case Evidence::kAcknowledging:
      return "no heartbeat, but its machine acknowledges packets";
    case Evidence::kUnacknowledged:
      return "no heartbeat, and its machine does not acknowledge packets";
    case Evidence::kNone:
    case Evidence::kRevoked:
      break;
  }
  return "";
}

}  // namespace muster
