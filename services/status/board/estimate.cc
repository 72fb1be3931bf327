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
  // By this estimate no pair between these two ends after the later one.
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
