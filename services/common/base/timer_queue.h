// The waiting callbacks of a TimerService by due time, for the real one and the fake one.
#ifndef MUSTER_SERVICES_COMMON_BASE_TIMER_QUEUE_H_
#define MUSTER_SERVICES_COMMON_BASE_TIMER_QUEUE_H_

#include <cstddef>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "services/common/base/due_queue.h"
#include "services/common/base/timers.h"

namespace muster {

// Not thread-safe.
class TimerQueue {
 public:
  using Callback = absl::AnyInvocable<void()>;

  TimerId Add(absl::Duration due, Callback callback) {
    const TimerId id = ++last_id_;
    due_.Set(id, due);
    callbacks_.emplace(id, std::move(callback));
    return id;
  }

  // Removes and returns the callback of `id`; empty if it does not wait. The caller destroys the
  // callback outside its lock, because the destructor of a captured object may call back.
  Callback Remove(TimerId id) {
    if (!due_.Remove(id)) return nullptr;
    return std::move(callbacks_.extract(id).mapped());
  }

  // Returns when the next timer falls due.
  std::optional<absl::Duration> NextDue() const { return due_.NextDue(); }

  // Removes and returns the first callback that is due at `now`; empty if none is.
  Callback PopDue(absl::Duration now) {
    const auto id = due_.PopDue(now);
    if (!id) return nullptr;
    return std::move(callbacks_.extract(*id).mapped());
  }

  size_t size() const { return due_.size(); }

 private:
  TimerId last_id_ = 0;
  DueQueue<TimerId> due_;
  absl::flat_hash_map<TimerId, Callback> callbacks_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_TIMER_QUEUE_H_
