// The time that commands spend in transit.
#ifndef MUSTER_SERVICES_COMMON_JOBS_TRANSIT_CLOCK_H_
#define MUSTER_SERVICES_COMMON_JOBS_TRANSIT_CLOCK_H_

#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"

namespace muster {

// Measures the transit of commands on one stream from a relay, without wall clocks. The relay sends
// its monotonic clock in each welcome and each command, and the welcome with the shortest transit
// relates that clock to the receiver's. A command may wait long, for example in the buffer of a
// suspended process. Not thread-safe.
class TransitClock {
 public:
  // Handles a welcome with the sender's clock, received at `now`. `first`: of a new stream.
  void Welcome(absl::Duration sender, absl::Duration now, bool first);

  // Subtracts the time in transit from the remaining times of the command, which become 0 at least.
  void Adjust(absl::Duration now, v1::JobCommand* command) const;

 private:
  // The receiver's clock minus the sender's, plus the shortest transit of a welcome.
  absl::Duration offset_ = absl::InfiniteDuration();
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOBS_TRANSIT_CLOCK_H_
