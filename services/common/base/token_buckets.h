// Rates of events by key.
#ifndef MUSTER_SERVICES_COMMON_BASE_TOKEN_BUCKETS_H_
#define MUSTER_SERVICES_COMMON_BASE_TOKEN_BUCKETS_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "services/common/base/mutex.h"

namespace muster {

// One token bucket for each key, such as the URI of an identity. It bounds how often the same peer
// may do something expensive. Remembers at most `max_keys` keys. When there are more, further keys
// are accepted without a bucket until full buckets are forgotten, which is once a second: many keys
// that take a few tokens each must not lock out others. Thread-safe.
class TokenBuckets {
 public:
  struct Rate {
    double per_second = 0;  // positive
    double burst = 0;       // the tokens of a full bucket; at least 1
  };

  static constexpr size_t kDefaultMaxKeys = 20'000;

  explicit TokenBuckets(size_t max_keys = kDefaultMaxKeys) : max_keys_(max_keys) {}

  // Takes a token of the bucket of `key` and returns zero, or returns the time until the next
  // token. A key has the same rate every time. `now` is of Clock::MonotonicNow.
  absl::Duration Take(std::string_view key, const Rate& rate, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Bucket {
    double tokens = 0;
    absl::Duration updated;
    absl::Duration full;  // when
  };

  // Forgets full buckets if the limit is reached, at most once a second.
  bool IsFull(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_keys_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mutex_);
  absl::Duration swept_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_TOKEN_BUCKETS_H_
