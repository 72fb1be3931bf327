#include "cli/supervisor/event_loop.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "services/common/base/clock.h"

namespace muster::supervisor {

void EventLoop::Watch(int fd, Callback on_ready) {
  watched_[fd] = std::make_shared<Callback>(std::move(on_ready));
}

void EventLoop::Unwatch(int fd) { watched_.erase(fd); }

void EventLoop::After(absl::Duration delay, Callback on_time) {
  timers_.emplace(SystemClock().MonotonicNow() + delay, std::move(on_time));
}

void EventLoop::Run() {
  while (!stopped_) {
    std::vector<struct pollfd> fds;
    for (const auto& [fd, callback] : watched_) fds.push_back({.fd = fd, .events = POLLIN});
    const int ready = ::poll(fds.data(), fds.size(), MillisecondsToWait());
    for (const struct pollfd& entry : fds) {
      if (ready <= 0 || entry.revents == 0) continue;
      // A callback may unwatch others, and itself.
      const auto found = watched_.find(entry.fd);
      if (found == watched_.end()) continue;
      const std::shared_ptr<Callback> callback = found->second;
      (*callback)();
    }
    RunTimers();
  }
}

int EventLoop::MillisecondsToWait() const {
  if (timers_.empty()) return -1;
  const absl::Duration left = timers_.begin()->first - SystemClock().MonotonicNow();
  const absl::Duration max_wait = absl::Hours(1);
  return static_cast<int>(
      absl::ToInt64Milliseconds(std::clamp(left, absl::ZeroDuration(), max_wait)) + 1);
}

void EventLoop::RunTimers() {
  const absl::Duration now = SystemClock().MonotonicNow();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const Callback callback = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    callback();
  }
}

}  // namespace muster::supervisor
