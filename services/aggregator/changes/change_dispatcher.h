// Tells the parts of the aggregator what has changed, in order, from the feed that everybody else
// follows too.
#ifndef MUSTER_SERVICES_AGGREGATOR_CHANGES_CHANGE_DISPATCHER_H_
#define MUSTER_SERVICES_AGGREGATOR_CHANGES_CHANGE_DISPATCHER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/timers.h"
#include "services/common/store/change_feed.h"

namespace muster {

// Thread-safe.
class ChangeDispatcher {
 public:
  using Observer = std::function<void(const ChangeRecord& change)>;
  using Waker = std::function<void()>;

  // Reads on `executor`. Changes before Start are not told. With `timers`, which must stop before
  // this is gone, what comes soon after a batch is told together with what follows it: reading the
  // feed after each commit would cost more than the commits.
  ChangeDispatcher(ChangeFeed& feed, Executor& executor, TimerService* timers = nullptr);
  ~ChangeDispatcher();

  // Called for each change, one at a time, on the executor. Before Start.
  void AddObserver(Observer observer);

  absl::Status Start();

  // Tells no more; waits for what is being told.
  void Stop();

  // Calls `waker` after each batch of changes, and every few seconds (WakeAll), until the returned
  // handle is gone. It must not block.
  using Handle = std::shared_ptr<void>;
  Handle Watch(Waker waker);

  // Wakes every watcher, so that those that owe a sign of life can give one.
  void WakeAll();

 private:
  void Poke() ABSL_LOCKS_EXCLUDED(mutex_);
  void PostRead() ABSL_LOCKS_EXCLUDED(mutex_);
  void Read() ABSL_LOCKS_EXCLUDED(read_mutex_);

  ChangeFeed& feed_;
  Executor& executor_;
  TimerService* const timers_;
  std::vector<Observer> observers_;
  std::unique_ptr<ChangeFeed::Subscription> subscription_;
  Mutex read_mutex_;  // one reader at a time, in order
  int64_t cursor_ ABSL_GUARDED_BY(read_mutex_) = 0;
  Mutex mutex_;
  bool pending_ ABSL_GUARDED_BY(mutex_) = false;  // a Read is queued that has not begun
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration read_at_ ABSL_GUARDED_BY(mutex_);  // monotonic, of the last Read
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Waker> watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_CHANGES_CHANGE_DISPATCHER_H_
