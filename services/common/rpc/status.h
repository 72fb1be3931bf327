// The one place that knows both kinds of status.
#ifndef MUSTER_SERVICES_COMMON_RPC_STATUS_H_
#define MUSTER_SERVICES_COMMON_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace muster {

// For the wire: code, message (cut at 1024 bytes, since metadata is bounded) and, if the error has
// a reason, an ErrorDetail with reason, next step and retry time.
grpc::Status ToGrpc(const absl::Status& status);

// From the wire. An UNAVAILABLE without a reason, which is how every failed connection and every
// refused TLS handshake looks, gets the reason UNREACHABLE and a hint.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_STATUS_H_
