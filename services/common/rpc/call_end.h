// The end of a call whose messages are read one after another.
#ifndef MUSTER_SERVICES_COMMON_RPC_CALL_END_H_
#define MUSTER_SERVICES_COMMON_RPC_CALL_END_H_

#include <grpcpp/client_context.h>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

// A service ends its call together with its last message, unless it has sent bytes that are no
// message: then it may leave the call open.
inline constexpr absl::Duration kCallEndLimit = absl::Seconds(10);

// Returns the status of a call after a read that failed. `finish` waits for it, as
// ClientReader::Finish. Cancels the call after `limit`, and returns INTERNAL (UNREADABLE_ANSWER).
absl::Status AwaitCallEnd(grpc::ClientContext& context, absl::FunctionRef<grpc::Status()> finish,
                          absl::Duration limit = kCallEndLimit);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CALL_END_H_
