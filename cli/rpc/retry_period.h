// The times of calls of the command line.
#ifndef MUSTER_CLI_RPC_RETRY_PERIOD_H_
#define MUSTER_CLI_RPC_RETRY_PERIOD_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/interrupt.h"

namespace muster::cli {

// The limit of one attempt.
inline constexpr absl::Duration kCallLimit = absl::Seconds(20);

// A call of an unreachable service is repeated for as long as a restart takes.
inline constexpr absl::Duration kRetryFor = absl::Seconds(2);

// The period of one call, from its first attempt. Not thread-safe.
class RetryPeriod {
 public:
  explicit RetryPeriod(absl::Duration length = kRetryFor) : end_(absl::Now() + length) {}

  // Waits for the next attempt. Returns false if the period is over, or after an interrupt.
  bool Pause() const {
    constexpr absl::Duration kPause = absl::Milliseconds(250);
    return absl::Now() < end_ && SleepUnlessInterrupted(kPause);
  }

 private:
  const absl::Time end_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_RETRY_PERIOD_H_
