// Both clocks as one, for answers that a client compares.
#ifndef MUSTER_SERVICES_STATUS_BOARD_MOMENT_CLOCK_H_
#define MUSTER_SERVICES_STATUS_BOARD_MOMENT_CLOCK_H_

#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/status/board/reasons.h"

namespace muster {

// Shows monotonic times as wall times that do not change between two answers. The clocks are read
// one after the other, and the time between the reads would shift each wall time a little. So the
// wall clock counts only at the first read and after it was set by more than 250 ms. Not
// thread-safe.
class MomentClock {
 public:
  explicit MomentClock(const Clock& clock) : clock_(clock) {}

  Moment Now() {
    constexpr absl::Duration kWasSet = absl::Milliseconds(250);
    const absl::Time wall = clock_.Now();
    const absl::Duration monotonic = clock_.MonotonicNow();
    const absl::Duration off = wall - monotonic - wall_zero_;
    if (off > kWasSet || off < -kWasSet) wall_zero_ = wall - monotonic;
    return {wall_zero_ + monotonic, monotonic};
  }

 private:
  const Clock& clock_;
  absl::Time wall_zero_ = absl::InfinitePast();  // the wall time at monotonic zero
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_MOMENT_CLOCK_H_
