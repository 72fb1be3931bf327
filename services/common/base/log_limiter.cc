#include "services/common/base/log_limiter.h"

#include <utility>

namespace muster {
namespace {

// The source of all events beyond the limit of sources.
constexpr std::string_view kOthers = "(others)";

// A sweep visits every source, so a flood of sources must not cause one for each event.
constexpr absl::Duration kBetweenSweeps = absl::Seconds(1);

}  // namespace

std::optional<int64_t> LogLimiter::Count(std::string_view source, absl::Duration now) {
  MutexLock lock(mutex_);
  std::string key(source);
  if (!sources_.contains(key) && IsFull(now)) key = kOthers;
  const auto [found, added] = sources_.try_emplace(key);
  Source& known = found->second;
  if (!added && now < known.logged + period_) {
    ++known.suppressed;
    return std::nullopt;
  }
  known.logged = now;
  return std::exchange(known.suppressed, 0) + 1;
}

bool LogLimiter::IsFull(absl::Duration now) {
  if (sources_.size() < max_sources_) return false;
  if (now < swept_ + kBetweenSweeps) return true;
  swept_ = now;
  int64_t suppressed = 0;
  absl::erase_if(sources_, [&](const auto& entry) {
    if (now < entry.second.logged + period_) return false;
    suppressed += entry.second.suppressed;
    return true;
  });
  // The next line of the other sources has the count of the forgotten ones.
  if (suppressed > 0) sources_[std::string(kOthers)].suppressed += suppressed;
  return sources_.size() >= max_sources_;
}

}  // namespace muster
