// Conversion between the two kinds of status.
#ifndef MUSTER_SERVICES_COMMON_RPC_STATUS_H_
#define MUSTER_SERVICES_COMMON_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace muster {

// Converts for the wire: code, message (cut at 1024 bytes, since metadata is bounded) and, if the
// error has a reason, an ErrorDetail with reason, next step and retry time.
grpc::Status ToGrpc(const absl::Status& status);

// Converts from the wire. A failed connection is an UNAVAILABLE without a reason: it gets a reason,
// plain words and a next step (connection_error.h).
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_STATUS_H_
