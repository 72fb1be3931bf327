// Reads the pairs of runs that have ended from the aggregator.
#ifndef MUSTER_SERVICES_STATUS_PAIR_READER_H_
#define MUSTER_SERVICES_STATUS_PAIR_READER_H_

#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "muster/v1/changes.pb.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/common/rpc/client_stream.h"
#include "services/common/rpc/service_channel.h"
#include "services/status/board/ended_runs.h"

namespace muster {

// One run at a time, so that the memory for messages is bounded and the aggregator has time for
// other callers. Thread-safe.
class PairReader {
 public:
  // `timers` and `executor` outlive this object.
  PairReader(GetChannel aggregator, TimerService& timers, Executor& executor);
  ~PairReader() { Stop(); }

  // Calls `add` and `done` on the executor. A read fails if its first message takes longer than ten
  // seconds, or all of it longer than ten minutes.
  void Read(const std::string& run, EndedRuns::Add add, EndedRuns::Done done)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends all reads with an error. Idempotent. Must not be called from `add` or `done`.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Stream = ClientStream<v1::FollowChangesRequest, v1::FollowChangesResponse>;
  using Owner = StreamOwner<v1::FollowChangesRequest, v1::FollowChangesResponse>;
  struct Order {
    std::string run;
    EndedRuns::Add add;
    EndedRuns::Done done;
  };
  class Session;

  void Open() ABSL_LOCKS_EXCLUDED(mutex_);
  void SessionEnded() ABSL_LOCKS_EXCLUDED(mutex_);

  const GetChannel aggregator_;
  TimerService& timers_;
  Executor& executor_;
  Mutex mutex_;
  std::deque<Order> orders_ ABSL_GUARDED_BY(mutex_);  // waiting
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Owner> owner_;  // used by Open, and by Stop after it
  ScheduledTask open_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_PAIR_READER_H_
