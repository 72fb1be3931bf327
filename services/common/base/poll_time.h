// The times of poll(2).
#ifndef MUSTER_SERVICES_COMMON_BASE_POLL_TIME_H_
#define MUSTER_SERVICES_COMMON_BASE_POLL_TIME_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace muster {

// Returns the argument of poll for a wait of at most an hour; -1 for InfiniteDuration.
inline int PollMilliseconds(absl::Duration left) {
  if (left == absl::InfiniteDuration()) return -1;
  return static_cast<int>(std::clamp<int64_t>(
      absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))), 0, int64_t{3600} * 1000));
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_POLL_TIME_H_
