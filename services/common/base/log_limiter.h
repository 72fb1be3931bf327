// Limits how often the same event of one source is logged.
#ifndef MUSTER_SERVICES_COMMON_BASE_LOG_LIMITER_H_
#define MUSTER_SERVICES_COMMON_BASE_LOG_LIMITER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "services/common/base/mutex.h"

namespace muster {

// For events that a peer causes: one log line for each source and period. Remembers at most
// `max_sources` sources; all further ones count as one source. Thread-safe.
class LogLimiter {
 public:
  explicit LogLimiter(absl::Duration period = absl::Minutes(1), size_t max_sources = 1'000)
      : period_(period), max_sources_(max_sources) {}

  // Counts an event of `source`. Returns the number of its events since its last log line if this
  // one may be logged; otherwise nothing. `now` is of Clock::MonotonicNow.
  std::optional<int64_t> Count(std::string_view source, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Source {
    absl::Duration logged;   // when
    int64_t suppressed = 0;  // events since
  };

  // Forgets sources whose period has ended if the limit is reached.
  bool IsFull(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const absl::Duration period_;
  const size_t max_sources_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Source> sources_ ABSL_GUARDED_BY(mutex_);
  absl::Duration swept_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_LOG_LIMITER_H_
