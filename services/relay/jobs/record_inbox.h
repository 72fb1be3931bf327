// The work of the thread that stores job records.
#ifndef MUSTER_SERVICES_RELAY_JOBS_RECORD_INBOX_H_
#define MUSTER_SERVICES_RELAY_JOBS_RECORD_INBOX_H_

#include <deque>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/mutex.h"
#include "services/relay/jobs/record_sink.h"

namespace muster {

// Collects what other threads report until the writer handles it: many records share one sync. Its
// size is bounded by the children, which have one message each until `done` is called. Thread-safe.
class RecordInbox {
 public:
  struct Batch {
    v1::JobRecords records;
    RecordSink::Done done;
  };
  struct Work {
    std::deque<Batch> batches;
    std::vector<std::pair<std::string, bool>> relays;  // attached, or lost
    bool reachable = false;                            // a node became reachable
  };

  void Add(Batch batch) {
    MutexLock lock(mutex_);
    work_.batches.push_back(std::move(batch));
    Notify();
  }
  void AddRelay(const std::string& relay, bool attached) {
    MutexLock lock(mutex_);
    work_.relays.emplace_back(relay, attached);
    Notify();
  }
  void SetReachable() {
    MutexLock lock(mutex_);
    work_.reachable = true;
    Notify();
  }
  // Ends a Wait: a job has records to store.
  void Wake() {
    MutexLock lock(mutex_);
    Notify();
  }

  // Waits for work, a wake or a stop, for at most `limit`, and returns the work.
  Work Wait(const std::stop_token& stop, absl::Duration limit) {
    MutexLock lock(mutex_);
    changed_.WaitFor(mutex_, stop, limit,
                     [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return woken_; });
    woken_ = false;
    return std::exchange(work_, Work());
  }

 private:
  void Notify() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    woken_ = true;
    changed_.NotifyOne();
  }

  Mutex mutex_;
  StoppableCondVar changed_;
  Work work_ ABSL_GUARDED_BY(mutex_);
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_RECORD_INBOX_H_
