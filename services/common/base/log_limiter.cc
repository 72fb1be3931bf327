#include "services/common/base/log_limiter.h"

#include <utility>

namespace muster {

std::optional<int64_t> LogLimiter::Count(std::string_view source, absl::Duration now) {
  MutexLock lock(mutex_);
  const std::string key(source);
  const auto found = sources_.find(key);
  if (found != sources_.end()) {
    Source& known = found->second;
    if (now < known.logged + period_) {
      ++known.suppressed;
      return std::nullopt;
    }
    known.logged = now;
    return std::exchange(known.suppressed, 0) + 1;
  }
  if (sources_.size() >= max_sources_) {
    absl::erase_if(sources_,
                   [&](const auto& entry) { return entry.second.logged + period_ <= now; });
    if (sources_.size() >= max_sources_) return std::nullopt;
  }
  sources_[key].logged = now;
  return 1;
}

}  // namespace muster
