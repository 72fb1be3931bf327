// Which ends of a stream of a job's output are followed by another stream.
#ifndef MUSTER_CLI_RPC_WATCH_RETRY_H_
#define MUSTER_CLI_RPC_WATCH_RETRY_H_

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster::cli {

// The longest time without a response of the relay.
inline constexpr absl::Duration kWatchSilence = absl::Minutes(2);

// Returns whether a stream is opened again, `silence` after the last response. The relay cancels a
// stream whose reader does not read for a minute: it is opened again too.
inline bool IsWatchRetried(const absl::Status& end, absl::Duration silence) {
  return (absl::IsUnavailable(end) || absl::IsCancelled(end)) && silence < kWatchSilence;
}

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_WATCH_RETRY_H_
