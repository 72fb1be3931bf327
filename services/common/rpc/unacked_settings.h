// The bounds of a connection whose peer has not acknowledged the settings of the server.
#ifndef MUSTER_SERVICES_COMMON_RPC_UNACKED_SETTINGS_H_
#define MUSTER_SERVICES_COMMON_RPC_UNACKED_SETTINGS_H_

#include <cstdint>

#include "absl/status/status.h"

namespace muster {

struct UnackedSettings {
  uint32_t streams = 0;
  uint32_t metadata_bytes = 0;  // of one stream
};

// Sets the bounds of each connection of this process until the peer acknowledges the settings of
// its server. gRPC before 1.60 applies GRPC_ARG_MAX_CONCURRENT_STREAMS and
// GRPC_ARG_MAX_METADATA_SIZE only from then on, and has no setting for the time before (grpc/grpc
// pull request 34638): a peer that never acknowledges could open any number of streams. The bounds
// replace gRPC's defaults of these HTTP/2 settings, which it keeps in a table of its library. A
// connection with more streams is closed.
//
// gRPC does not send a setting that equals the default, so every server of the process has to set
// both arguments to other numbers. Clients of the process are not affected: they open no stream
// before they have the settings of their server.
//
// Call it before the first server is built; thread-safe. INTERNAL if gRPC's table is not as
// expected.
absl::Status BoundUnackedSettings(const UnackedSettings& bounds);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_UNACKED_SETTINGS_H_
