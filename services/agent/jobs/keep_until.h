// How long a job is remembered.
#ifndef MUSTER_SERVICES_AGENT_JOBS_KEEP_UNTIL_H_
#define MUSTER_SERVICES_AGENT_JOBS_KEEP_UNTIL_H_

#include "absl/time/time.h"
#include "services/common/base/clock.h"

namespace muster {

// A wall time that a wrong clock does not bring forward: a job that is forgotten while the clock is
// wrong could run when the clock is right again.
class KeepUntil {
 public:
  // The duration `least` passes at any rate, because the clock may be wrong.
  KeepUntil(absl::Time until, absl::Duration least, const Clock& clock)
      : until_(until), earliest_(clock.MonotonicNow() + least) {}

  bool IsOver(const Clock& clock) const {
    return clock.Now() >= until_ && clock.MonotonicNow() >= earliest_;
  }
  absl::Time until() const { return until_; }

 private:
  absl::Time until_;
  absl::Duration earliest_;  // monotonic
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_KEEP_UNTIL_H_
