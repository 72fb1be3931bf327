// How long a peer may take no message, before its call is dropped.
#ifndef MUSTER_SERVICES_COMMON_RPC_STUCK_READERS_H_
#define MUSTER_SERVICES_COMMON_RPC_STUCK_READERS_H_

#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/rpc/call_canceller.h"

namespace muster {

// The limit of watches, attached children and answers.
inline constexpr absl::Duration kStuckReader = absl::Seconds(60);
// The same at the aggregator, where senders of uploads hold sessions.
inline constexpr absl::Duration kStuckUploader = absl::Seconds(30);

// Cancels every call whose peer has not taken a message for `limit`; returns how many. To be called
// every few seconds.
int DropStuckReaders(CallCanceller& calls, const Clock& clock, absl::Duration limit);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_STUCK_READERS_H_
