// Passes the changes of the feed to the parts of the aggregator, in order.
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

  // Reads on `executor`, and only changes after Start. With `timers`, which must stop before the
  // dispatcher is destroyed, changes soon after a batch are collected: reading the feed after each
  // commit would cost more than the commits.
  ChangeDispatcher(ChangeFeed& feed, Executor& executor, TimerService* timers = nullptr);
  ~ChangeDispatcher();

  // Runs for each change, one at a time, on the executor. Must be called before Start.
  void AddObserver(Observer observer);

  // Runs instead of the observers, on the executor, if the feed dropped changes that were not read
  // yet: it brings what they maintain up to date. After an error RetryFailedRead runs it again.
  // Must be called before Start.
  void OnGap(std::function<absl::Status()> on_gap) { on_gap_ = std::move(on_gap); }

  absl::Status Start();

  // Stops the calls; waits for a running one.
  void Stop();

  // Reads again if the last read failed or the executor refused it. To be called every second: no
  // further change may arrive, and revocations are among the changes.
  void RetryFailedRead();

  // Calls `waker` after each batch of changes, and every few seconds (WakeAll), until the returned
  // handle is destroyed. `waker` must not block.
  using Handle = std::shared_ptr<void>;
  Handle Watch(Waker waker);

  // Wakes every watcher, so that idle streams can send a heartbeat.
  void WakeAll();

 private:
  void Poke() ABSL_LOCKS_EXCLUDED(mutex_);
  void PostRead() ABSL_LOCKS_EXCLUDED(mutex_);
  void Read() ABSL_LOCKS_EXCLUDED(read_mutex_, mutex_);
  absl::Status ReadToEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(read_mutex_);
  absl::Status SkipGap() ABSL_EXCLUSIVE_LOCKS_REQUIRED(read_mutex_);

  ChangeFeed& feed_;
  Executor& executor_;
  TimerService* const timers_;
  std::vector<Observer> observers_;
  std::function<absl::Status()> on_gap_ = [] { return absl::OkStatus(); };
  std::unique_ptr<ChangeFeed::Subscription> subscription_;
  Mutex read_mutex_;  // one reader at a time, in order
  int64_t cursor_ ABSL_GUARDED_BY(read_mutex_) = 0;
  Mutex mutex_;
  bool pending_ ABSL_GUARDED_BY(mutex_) = false;  // a Read is queued and has not begun
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;   // the last Read, or its Post
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration read_at_ ABSL_GUARDED_BY(mutex_);  // monotonic, of the last Read
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Waker> watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_CHANGES_CHANGE_DISPATCHER_H_
