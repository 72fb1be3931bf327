// The limits of a connection, by the role of its peer.
#ifndef MUSTER_SERVICES_COMMON_RPC_CONNECTION_LIMITS_H_
#define MUSTER_SERVICES_COMMON_RPC_CONNECTION_LIMITS_H_

#include <string_view>

namespace muster {

struct ConnectionLimits {
  int message_bytes = 0;  // of one message
  int streams = 0;        // at a time
};

// Returns the limits of a connection whose peer has a verified certificate with this URI. A URI
// that names no role gets the smallest. The messages that a relay or gateway forwards were bounded
// by the role of its client at its own listener.
ConnectionLimits ConnectionLimitsOf(std::string_view uri);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CONNECTION_LIMITS_H_
