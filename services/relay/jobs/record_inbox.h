// The work of the task that stores job records.
#ifndef MUSTER_SERVICES_RELAY_JOBS_RECORD_INBOX_H_
#define MUSTER_SERVICES_RELAY_JOBS_RECORD_INBOX_H_

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "muster/v1/jobs.pb.h"
#include "services/common/base/mutex.h"
#include "services/relay/jobs/record_sink.h"

namespace muster {

// Collects what other threads report until the writer handles it: many records share one sync. Its
// size is bounded by the children, which have one message each until `done` is called, and by the
// relays, which have one entry each. Thread-safe. The listener is called with the lock of this
// object held.
class RecordInbox {
 public:
  struct Batch {
    v1::JobRecords records;
    RecordSink::Done done;
  };
  struct Work {
    std::deque<Batch> batches;
    std::map<std::string, bool> relays;  // whether each was attached, or lost
    bool reachable = false;              // a node became reachable
  };

  // Sets the function that is called whenever there is work; null: none. Returns when no call of
  // the previous one is running. `wake` must not block, or call this object.
  void Listen(std::function<void()> wake) {
    MutexLock lock(mutex_);
    wake_ = std::move(wake);
  }

  void Add(Batch batch) {
    MutexLock lock(mutex_);
    work_.batches.push_back(std::move(batch));
    Notify();
  }
  // A relay that was lost and is attached again before the writer handles it has not changed, and
  // vice versa.
  void AddRelay(const std::string& relay, bool attached) {
    MutexLock lock(mutex_);
    const auto [known, added] = work_.relays.try_emplace(relay, attached);
    if (!added && known->second != attached) work_.relays.erase(known);
    Notify();
  }
  void SetReachable() {
    MutexLock lock(mutex_);
    work_.reachable = true;
    Notify();
  }
  // A job has records to store.
  void Wake() {
    MutexLock lock(mutex_);
    Notify();
  }

  // Removes and returns the work.
  Work Dequeue() {
    MutexLock lock(mutex_);
    return std::exchange(work_, Work());
  }

 private:
  void Notify() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (wake_) wake_();
  }

  Mutex mutex_;
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
  Work work_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_RECORD_INBOX_H_
