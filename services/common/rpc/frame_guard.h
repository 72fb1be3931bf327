// Closes the connections of clients that flood gRPC with frames.
#ifndef MUSTER_SERVICES_COMMON_RPC_FRAME_GUARD_H_
#define MUSTER_SERVICES_COMMON_RPC_FRAME_GUARD_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace muster {

// From now on, a connection of a server of this process is closed when its client exceeds a limit
// of frame_meter.h or call_backlog.h. gRPC 1.51 has no such limits and no hook for them, so this
// unit replaces functions of its library for the whole process (docs/decisions/0031): those that
// begin and end a connection and its streams, and the one that reads its bytes. Connections to
// other servers are not limited.
//
// A call ends with RESOURCE_EXHAUSTED (MESSAGE_TOO_LARGE) when its client declares a message that
// is larger than its listener or its role permits (connection_limits.h), before the message has
// arrived. The settings of the connection announce the streams that its role permits.
//
// Call it before the first server is built; thread-safe. INTERNAL if gRPC's library has no such
// functions.
absl::Status GuardFrames();

// The connection of this peer (grpc::ServerContext::peer) forwards the calls of many clients, so it
// may reset many at a time. Thread-safe, and cheap enough for each call.
void MarkForwarder(const std::string& peer);

// Return how many connections were closed, and how many calls ended for a message that was too
// large, since the previous call.
size_t DrainFloodedConnections();
size_t DrainRefusedMessages();

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_FRAME_GUARD_H_
