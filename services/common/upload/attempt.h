// The numbers of attempts.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_ATTEMPT_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_ATTEMPT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/error.h"
#include "services/common/errors/results.h"

namespace muster {

// Senders count their attempts, or number them by the time in nanoseconds, by clocks that may be a
// day ahead. INVALID_ATTEMPT.
inline absl::Status CheckAttempt(int64_t attempt, absl::Time now) {
  const int64_t most = absl::ToUnixNanos(now + absl::Hours(24));
  if (attempt >= 1 && attempt <= most) return absl::OkStatus();
  return errors::InvalidAttempt(attempt, most);
}

// Returns TAKEN_OVER for an attempt that is lower than `newest`, or that has other content.
inline absl::Status StaleAttempt(int64_t attempt, int64_t newest) {
  return WithNewestAttempt(errors::StaleAttempt(attempt, newest), newest);
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_ATTEMPT_H_
