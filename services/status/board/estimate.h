// When the last pair of a plugin may be through.
#ifndef MUSTER_SERVICES_STATUS_BOARD_ESTIMATE_H_
#define MUSTER_SERVICES_STATUS_BOARD_ESTIMATE_H_

#include <optional>

#include "absl/time/time.h"
#include "services/status/board/durations.h"

namespace muster {

// A range of monotonic time.
struct TimeRange {
  absl::Duration earliest;
  absl::Duration latest;
};

// From how long finished pairs took: the middle and the slow end (p50 to p95) of those that took at
// least as long as an unfinished pair is at it already. `oldest` and `newest` are when the first
// and the last of the unfinished pairs began. Nothing with fewer than three finished pairs, or when
// one is at it longer than every pair that finished: then nothing can be said.
std::optional<TimeRange> EstimateEnd(const Durations& finished, absl::Duration oldest,
                                     absl::Duration newest, absl::Duration now);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_ESTIMATE_H_
