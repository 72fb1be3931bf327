// The waiting timers of a TimerService, by due time: shared by the real and the fake one.
#ifndef MUSTER_SERVICES_COMMON_BASE_TIMER_QUEUE_H_
#define MUSTER_SERVICES_COMMON_BASE_TIMER_QUEUE_H_

#include <cstddef>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "services/common/base/timers.h"

namespace muster {

// Not thread-safe.
class TimerQueue {
 public:
  using Callback = absl::AnyInvocable<void()>;

  TimerId Add(absl::Duration due, Callback callback) {
    const TimerId id = ++last_id_;
    waiting_.emplace(Key{due, id}, std::move(callback));
    due_by_id_.emplace(id, due);
    return id;
  }

  // The callback of `id`, or an empty one if it does not wait here. The caller destroys it
  // outside its lock: a destructor of a captured object may call back.
  Callback Remove(TimerId id) {
    const auto found = due_by_id_.find(id);
    if (found == due_by_id_.end()) return nullptr;
    const auto entry = waiting_.find(Key{found->second, id});
    Callback callback = std::move(entry->second);
    waiting_.erase(entry);
    due_by_id_.erase(found);
    return callback;
  }

  // When the next timer falls due.
  std::optional<absl::Duration> NextDue() const {
    if (waiting_.empty()) return std::nullopt;
    return waiting_.begin()->first.first;
  }

  // Takes out the first timer that is due at `now`; an empty callback if none is.
  Callback TakeDue(absl::Duration now) {
    if (waiting_.empty() || waiting_.begin()->first.first > now) return nullptr;
    return Remove(waiting_.begin()->first.second);
  }

  size_t size() const { return waiting_.size(); }

 private:
  using Key = std::pair<absl::Duration, TimerId>;  // the id keeps equal times in order

  TimerId last_id_ = 0;
  std::map<Key, Callback> waiting_;
  std::unordered_map<TimerId, absl::Duration> due_by_id_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_TIMER_QUEUE_H_
