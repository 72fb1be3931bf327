#include "services/common/base/token_buckets.h"

#include <algorithm>

#include "services/common/base/strings.h"

namespace muster {
namespace {

constexpr absl::Duration kSweepPeriod = absl::Seconds(1);

}  // namespace

absl::Duration TokenBuckets::Take(std::string_view key, const Rate& rate, absl::Duration now) {
  MutexLock lock(mutex_);
  auto it = buckets_.find(ToAbsl(key));
  if (it == buckets_.end()) {
    if (IsFull(now)) return absl::ZeroDuration();
    it = buckets_.emplace(std::string(key), Bucket{rate.burst, now, now}).first;
  }
  Bucket& bucket = it->second;
  const double seconds =
      absl::ToDoubleSeconds(std::max(now - bucket.updated, absl::ZeroDuration()));
  bucket.tokens = std::min(rate.burst, bucket.tokens + seconds * rate.per_second);
  bucket.updated = now;
  const bool taken = bucket.tokens >= 1;
  if (taken) bucket.tokens -= 1;
  bucket.full = now + absl::Seconds((rate.burst - bucket.tokens) / rate.per_second);
  if (taken) return absl::ZeroDuration();
  return absl::Seconds((1 - bucket.tokens) / rate.per_second);
}

bool TokenBuckets::IsFull(absl::Duration now) {
  if (buckets_.size() < max_keys_) return false;
  if (now - swept_ >= kSweepPeriod) {
    swept_ = now;
    absl::erase_if(buckets_, [now](const auto& entry) { return entry.second.full <= now; });
  }
  return buckets_.size() >= max_keys_;
}

}  // namespace muster
