#include "services/common/base/backoff.h"

#include <algorithm>

#include "services/common/base/mutex.h"

namespace muster {
namespace {

constexpr absl::Duration kLongestAsked = absl::Minutes(10);

}  // namespace

absl::Duration Backoff::Next(std::optional<absl::Duration> retry_after) {
  const absl::Duration ceiling =
      std::min(options_.most, options_.first * (1 << std::min(attempts_, 20)));
  ++attempts_;
  const double share = std::uniform_real_distribution<double>(0.0, 1.0)(random_);
  const absl::Duration jitter = options_.least + (ceiling - options_.least) * share;
  if (!retry_after) return jitter;
  const absl::Duration asked = std::clamp(*retry_after, absl::ZeroDuration(), kLongestAsked);
  return asked + std::min(jitter, std::max(asked, options_.first));
}

bool WaitFor(absl::Duration delay, const std::stop_token& stop) {
  Mutex mutex;
  StoppableCondVar wake;
  MutexLock lock(mutex);
  wake.WaitFor(mutex, stop, delay, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace muster
