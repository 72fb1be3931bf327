// Time, as everything in Muster reads it, so that a test can stand in for it.
#ifndef MUSTER_SERVICES_COMMON_BASE_CLOCK_H_
#define MUSTER_SERVICES_COMMON_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace muster {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Wall time, for what is stored and shown. It may jump.
  virtual absl::Time Now() const = 0;

  // Time since some fixed moment of this process's life, for deadlines and intervals. Never goes
  // back, and has no meaning outside this process.
  virtual absl::Duration MonotonicNow() const = 0;
};

// The clock of this machine. Lives as long as the process.
const Clock& SystemClock();

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_CLOCK_H_
