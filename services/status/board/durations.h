// How long things took: enough of it to read quantiles, in little memory.
#ifndef MUSTER_SERVICES_STATUS_BOARD_DURATIONS_H_
#define MUSTER_SERVICES_STATUS_BOARD_DURATIONS_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace muster {

// Counts durations in buckets that grow by a fifth each, from 1 ms to about four months: a quantile
// is right to within that. Not thread-safe.
class Durations {
 public:
  void Add(absl::Duration duration);
  int64_t count() const { return count_; }

  // Returns what a share of `q` (0 to 1) of those that are longer than `above` did not exceed.
  // Nothing if none is.
  std::optional<absl::Duration> Quantile(double q, absl::Duration above = {}) const;

 private:
  static constexpr int kBuckets = 128;

  std::array<uint32_t, kBuckets> buckets_ = {};
  int64_t count_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_DURATIONS_H_
