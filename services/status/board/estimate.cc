#include "services/status/board/estimate.h"

#include <algorithm>

namespace muster {
namespace {

constexpr int kEnough = 3;
constexpr double kMiddle = 0.5;
constexpr double kSlowEnd = 0.95;

}  // namespace

std::optional<TimeRange> EstimateEnd(const Durations& finished, absl::Duration oldest,
                                     absl::Duration newest, absl::Duration now) {
  if (finished.count() < kEnough) return std::nullopt;
  TimeRange range = {now, now};
  // Of all that are between, none ends later than the later of these two by this reckoning.
  for (const absl::Duration begin : {oldest, newest}) {
    const absl::Duration spent = std::max(now - begin, absl::ZeroDuration());
    const auto middle = finished.Quantile(kMiddle, spent);
    const auto slow = finished.Quantile(kSlowEnd, spent);
    if (!middle || !slow) return std::nullopt;
    range.earliest = std::max(range.earliest, begin + *middle);
    range.latest = std::max(range.latest, begin + *slow);
  }
  return range;
}

}  // namespace muster
