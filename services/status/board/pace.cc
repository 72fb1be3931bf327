#include "services/status/board/pace.h"

#include <algorithm>
#include <cmath>

#include "services/status/board/reasons.h"

namespace muster {
namespace {

constexpr absl::Duration kShortest = absl::Seconds(10);
constexpr size_t kOthers = 5;
constexpr double kOfTheMiddle = 0.75;

}  // namespace

std::optional<absl::Duration> Motion::Moved(int64_t completed, absl::Duration at) {
  std::optional<absl::Duration> step;
  // A plugin that starts again counts from there.
  if (!moved_ || completed < completed_) {
    first_ = completed;
    first_at_ = at;
  }
  if (moved_) step = at - moved_at_;
  moved_ = true;
  moved_at_ = at;
  completed_ = completed;
  return step;
}

std::optional<double> Motion::Rate(absl::Duration now) const {
  if (!moved_ || completed_ <= first_ || now - first_at_ < kShortest) return std::nullopt;
  return static_cast<double>(completed_ - first_) / absl::ToDoubleSeconds(now - first_at_);
}

absl::Duration StuckAfter(const Durations& steps) {
  const absl::Duration slow = steps.Quantile(0.95).value_or(absl::ZeroDuration());
  return std::max(kStuckSteps * slow, kStuckAtLeast);
}

std::optional<double> SlowBelow(std::vector<double> rates) {
  if (rates.size() <= kOthers) return std::nullopt;
  // The tenth of the others ends one place further for one that is itself in it.
  const auto tenth = static_cast<size_t>(std::ceil(0.1 * static_cast<double>(rates.size() - 1)));
  const auto slow = rates.begin() + static_cast<std::ptrdiff_t>(tenth);
  std::nth_element(rates.begin(), slow, rates.end());
  const double below = *slow;
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return std::min(below, kOfTheMiddle * *middle);
}

}  // namespace muster
