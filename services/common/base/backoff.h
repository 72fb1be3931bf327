// How long to wait before the next attempt.
#ifndef MUSTER_SERVICES_COMMON_BASE_BACKOFF_H_
#define MUSTER_SERVICES_COMMON_BASE_BACKOFF_H_

#include <cstdint>
#include <optional>
#include <random>
#include <stop_token>

#include "absl/time/time.h"

namespace muster {

struct BackoffOptions {
  absl::Duration first = absl::Milliseconds(500);  // the first ceiling
  absl::Duration most = absl::Seconds(30);         // the largest ceiling
  absl::Duration least = absl::ZeroDuration();     // the shortest wait
};

// Exponential back-off with full jitter: a random time between the shortest wait and a ceiling,
// which doubles with each attempt. So the machines of a fleet do not reconnect together. Not
// thread-safe.
class Backoff {
 public:
  explicit Backoff(uint64_t seed = std::random_device{}()) : random_(seed) {}
  explicit Backoff(const BackoffOptions& options, uint64_t seed = std::random_device{}())
      : options_(options), random_(seed) {}

  // Returns the next wait. It is not shorter than `retry_after`, the wait that the server asked
  // for, and the jitter is added to that.
  absl::Duration Next(std::optional<absl::Duration> retry_after);

  // Starts again with the first ceiling, after a success.
  void Reset() { attempts_ = 0; }

 private:
  BackoffOptions options_;
  std::mt19937_64 random_;
  int attempts_ = 0;
};

// Blocks for `delay`. Returns false if `stop` is requested before.
bool WaitFor(absl::Duration delay, const std::stop_token& stop);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_BACKOFF_H_
