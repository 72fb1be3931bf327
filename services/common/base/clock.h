// The clock of all code, which tests replace.
#ifndef MUSTER_SERVICES_COMMON_BASE_CLOCK_H_
#define MUSTER_SERVICES_COMMON_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace muster {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Returns the wall time, for stored and displayed times. It may jump.
  virtual absl::Time Now() const = 0;

  // Returns a time for deadlines and intervals, which never decreases. It has no meaning outside of
  // this process.
  virtual absl::Duration MonotonicNow() const = 0;
};

// Returns the clock of this machine, which exists as long as the process.
const Clock& SystemClock();

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_CLOCK_H_
