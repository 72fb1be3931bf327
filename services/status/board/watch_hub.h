// Wakes the watchers of a run after a change.
#ifndef MUSTER_SERVICES_STATUS_BOARD_WATCH_HUB_H_
#define MUSTER_SERVICES_STATUS_BOARD_WATCH_HUB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/timers.h"

namespace muster {

// The least time between two rounds of a watcher: changes within it are sent together.
inline constexpr absl::Duration kWatchPace = absl::Milliseconds(250);

// Thread-safe. `timers` and `clock` outlive it.
class WatchHub {
 public:
  WatchHub(TimerService& timers, const Clock& clock);

  // Calls `wake` when `run` has changed, until the handle is destroyed. It must not block.
  using Handle = std::shared_ptr<void>;
  Handle Watch(const std::string& run, std::function<void()> wake);

  // Costs almost nothing without watchers. Takes only a short lock.
  void Changed(const std::string& run);

  // Wakes all watchers, so that they check the time.
  void WakeAll();

  int64_t watchers() const;

 private:
  struct State;
  static void Schedule(const std::shared_ptr<State>& state);
  static void Fire(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_WATCH_HUB_H_
