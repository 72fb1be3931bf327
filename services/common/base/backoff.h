// How long to wait before the next try.
#ifndef MUSTER_SERVICES_COMMON_BASE_BACKOFF_H_
#define MUSTER_SERVICES_COMMON_BASE_BACKOFF_H_

#include <optional>
#include <random>
#include <stop_token>

#include "absl/time/time.h"

namespace muster {

// Exponential with full jitter: a random time between 0 and a ceiling that doubles from 0.5 s to
// 30 s, so that a fleet that lost its aggregator does not come back as one wave. Not thread-safe.
class Backoff {
 public:
  explicit Backoff(uint64_t seed = std::random_device{}()) : random_(seed) {}

  // The next wait. Not shorter than what the server asked for, which is spread upward.
  absl::Duration Next(std::optional<absl::Duration> retry_after);

  // Something worked: begin small again.
  void Reset() { tries_ = 0; }

 private:
  std::mt19937_64 random_;
  int tries_ = 0;
};

// Waits; false if `stop` came first.
bool WaitFor(absl::Duration delay, const std::stop_token& stop);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_BACKOFF_H_
