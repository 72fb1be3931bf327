#include "services/status/board/watch_hub.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "services/common/base/log.h"
#include "services/common/base/mutex.h"

namespace muster {
namespace {

// A change seldom comes alone.
constexpr absl::Duration kGather = absl::Milliseconds(10);

}  // namespace

struct WatchHub::State {
  TimerService& timers;
  const Clock& clock;
  std::atomic<int64_t> count = 0;
  Mutex mutex;
  uint64_t next_id ABSL_GUARDED_BY(mutex) = 0;
  // By run, then by id.
  std::unordered_map<std::string, std::unordered_map<uint64_t, std::function<void()>>> watchers
      ABSL_GUARDED_BY(mutex);
  std::set<std::string> changed ABSL_GUARDED_BY(mutex);
  bool scheduled ABSL_GUARDED_BY(mutex) = false;
  absl::Duration fired_at ABSL_GUARDED_BY(mutex) = -absl::InfiniteDuration();  // monotonic
};

WatchHub::WatchHub(TimerService& timers, const Clock& clock) : state_(new State{timers, clock}) {}

WatchHub::Handle WatchHub::Watch(const std::string& run, std::function<void()> wake) {
  MutexLock lock(state_->mutex);
  const uint64_t id = state_->next_id++;
  state_->watchers[run].emplace(id, std::move(wake));
  ++state_->count;
  return {nullptr, [state = state_, run, id](void*) {
            MutexLock guard(state->mutex);
            const auto watchers = state->watchers.find(run);
            watchers->second.erase(id);
            if (watchers->second.empty()) state->watchers.erase(watchers);
            --state->count;
          }};
}

void WatchHub::Changed(const std::string& run) {
  if (state_->count == 0) return;
  {
    MutexLock lock(state_->mutex);
    if (!state_->watchers.contains(run)) return;
    state_->changed.insert(run);
    if (std::exchange(state_->scheduled, true)) return;
  }
  Schedule(state_);
}

void WatchHub::Schedule(const std::shared_ptr<State>& state) {
  absl::Duration delay;
  {
    MutexLock lock(state->mutex);
    delay = std::max(state->fired_at + kWatchPace - state->clock.MonotonicNow(), kGather);
  }
  const auto timer = state->timers.Schedule(delay, [weak = std::weak_ptr(state)] {
    if (const auto alive = weak.lock()) Fire(alive);
  });
  if (timer.ok()) return;
  // Those who wait are woken by WakeAll, or by a later change.
  Log(LogLevel::kError, "all timers are in use: watchers are not woken",
      {{"error", timer.status()}});
  MutexLock lock(state->mutex);
  state->scheduled = false;
}

void WatchHub::Fire(const std::shared_ptr<State>& state) {
  std::vector<std::function<void()>> wakes;
  {
    MutexLock lock(state->mutex);
    state->scheduled = false;
    state->fired_at = state->clock.MonotonicNow();
    for (const std::string& run : std::exchange(state->changed, {})) {
      const auto watchers = state->watchers.find(run);
      if (watchers == state->watchers.end()) continue;
      for (const auto& [id, wake] : watchers->second) wakes.push_back(wake);
    }
  }
  for (const auto& wake : wakes) wake();
}

void WatchHub::WakeAll() {
  {
    MutexLock lock(state_->mutex);
    for (const auto& [run, watchers] : state_->watchers) state_->changed.insert(run);
    if (state_->changed.empty() || std::exchange(state_->scheduled, true)) return;
  }
  Schedule(state_);
}

int64_t WatchHub::watchers() const { return state_->count; }

}  // namespace muster
