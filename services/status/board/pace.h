// How fast a plugin's progress goes, and when one of its pairs is slow or stuck.
#ifndef MUSTER_SERVICES_STATUS_BOARD_PACE_H_
#define MUSTER_SERVICES_STATUS_BOARD_PACE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "services/status/board/durations.h"

namespace muster {

// How the progress of one pair went. Times are monotonic. Not thread-safe.
class Motion {
 public:
  // The first report, and each that brings something new. The time since the one before is a step.
  std::optional<absl::Duration> Moved(int64_t completed, absl::Duration at);

  // Heartbeats resumed after a silence, in which no progress could arrive: moved_at() is `at`.
  void Resume(absl::Duration at) { moved_at_ = at; }

  bool moved() const { return moved_; }
  absl::Duration moved_at() const { return moved_at_; }

  // Completed per second since the first report. Nothing before it has counted up for ten seconds.
  std::optional<double> Rate(absl::Duration now) const;

 private:
  bool moved_ = false;
  absl::Duration first_at_;
  absl::Duration moved_at_;
  int64_t first_ = 0;
  int64_t completed_ = 0;
};

// Returns after how long without movement a pair is stuck: three times the slow steps (p95) of its
// plugin, and at least two minutes.
absl::Duration StuckAfter(const Durations& steps);

// Returns the rate under which a pair is slow: the rate of nine in ten of the others (p10), and at
// most three quarters of the median, since one is always last. Nothing with fewer than five others.
std::optional<double> SlowBelow(std::vector<double> rates);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_PACE_H_
