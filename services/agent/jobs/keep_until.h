// How long a job is remembered.
#ifndef MUSTER_SERVICES_AGENT_JOBS_KEEP_UNTIL_H_
#define MUSTER_SERVICES_AGENT_JOBS_KEEP_UNTIL_H_

#include <algorithm>

#include "absl/time/time.h"
#include "services/common/base/clock.h"

namespace muster {

// A wall time that a jump of the clock does not bring forward: a job that is forgotten while the
// clock is wrong could run again when the clock is right.
class KeepUntil {
 public:
  // `most` bounds the time that must pass: the clock may be wrong now.
  KeepUntil(absl::Time until, absl::Duration most, const Clock& clock)
      : until_(until),
        earliest_(clock.MonotonicNow() +
                  std::clamp(until - clock.Now(), absl::ZeroDuration(), most)) {}

  // Returns whether the time has come, and as much time has passed as was left at the beginning.
  bool IsOver(const Clock& clock) const {
    return clock.Now() >= until_ && clock.MonotonicNow() >= earliest_;
  }

 private:
  absl::Time until_;
  absl::Duration earliest_;  // monotonic
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_KEEP_UNTIL_H_
