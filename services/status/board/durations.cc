#include "services/status/board/durations.h"

#include <algorithm>
#include <cmath>

namespace muster {
namespace {

constexpr double kGrowth = 1.2;

// The bucket of a duration: bucket b holds what is longer than b-1's and at most growth^b ms.
int BucketOf(absl::Duration duration, int buckets) {
  const double millis = absl::ToDoubleMilliseconds(duration);
  if (millis <= 1) return 0;
  const double bucket = std::ceil(std::log(millis) / std::log(kGrowth));
  return static_cast<int>(std::min<double>(bucket, buckets - 1));
}

absl::Duration UpperEnd(int bucket) { return absl::Milliseconds(std::pow(kGrowth, bucket)); }

}  // namespace

void Durations::Add(absl::Duration duration) {
  ++buckets_[BucketOf(duration, kBuckets)];
  ++count_;
}

std::optional<absl::Duration> Durations::Quantile(double q, absl::Duration above) const {
  // In the bucket of `above` itself the side of a duration is not known.
  const int first = above > absl::ZeroDuration() ? BucketOf(above, kBuckets) + 1 : 0;
  int64_t total = 0;
  for (int b = first; b < kBuckets; ++b) total += buckets_[b];
  if (total == 0) return std::nullopt;
  const auto wanted = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(q * total)));
  int64_t seen = 0;
  for (int b = first; b < kBuckets; ++b) {
    seen += buckets_[b];
    if (seen >= wanted) return UpperEnd(b);
  }
  return UpperEnd(kBuckets - 1);
}

}  // namespace muster
