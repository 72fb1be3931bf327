// Protects gRPC from a header that ends the process.
#ifndef MUSTER_SERVICES_COMMON_RPC_HEADER_GUARD_H_
#define MUSTER_SERVICES_COMMON_RPC_HEADER_GUARD_H_

#include "absl/status/status.h"

namespace muster {

// gRPC 1.51 calls abort() when it gets a header "grpclb_client_stats", which is only for itself:
// any peer can send it, to a server without a certificate, and to a client in an answer (corrected
// in grpc/grpc pull request 33118). This unit replaces the function of the library that adds this
// header to a call, for the whole process, by one that drops it. It has no effect on others.
//
// Returns INTERNAL if gRPC's library has no such function; thread-safe.
absl::Status GuardHeaders();

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_HEADER_GUARD_H_
