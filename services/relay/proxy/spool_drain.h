// Delivers the results of the spool while there is an upstream connection.
#ifndef MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_H_
#define MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_H_

#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/relay/proxy/result_sender.h"
#include "services/relay/spool/spool.h"
#include "services/relay/upstream/upstream.h"

namespace muster {

// Delivers several results at a time, and sweeps the spool. A result that is rejected for good is
// removed, counted and logged. Thread-safe.
class SpoolDrain {
 public:
  // All of them outlive the drain.
  struct Environment {
    Spool& spool;
    Upstream& upstream;
    ResultSender& sender;
    const Clock& clock;
    TimerService& timers;
    Executor& deliveries;  // runs the deliveries, which may block
    Executor& background;  // runs the sweeps, which may wait for the disk
  };

  // The number of results that are delivered at a time: one may be large and its connection slow.
  static constexpr int kLanes = 3;

  explicit SpoolDrain(const Environment& environment);

  // Stops; an interrupted delivery is repeated after the next start.
  ~SpoolDrain();

  // Starts the deliveries and the sweeps. Called once.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);

  // Delivers at most one result; blocks. Returns how long to wait before the next call if nothing
  // changes. For the drain itself, and for tests without Start.
  absl::Duration RunOnce(const std::stop_token& stop);

 private:
  void RunLane(size_t lane) ABSL_LOCKS_EXCLUDED(mutex_);
  void Sweep();
  absl::Status Send(SpoolDelivery& delivery, const std::stop_token& stop);
  void Finish(const SpoolDelivery& delivery, const absl::Status& status);
  absl::Duration Requeue(const SpoolDelivery& delivery, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleUpstreamChange() ABSL_LOCKS_EXCLUDED(mutex_);
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration UntilNextDelivery() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Environment environment_;
  std::stop_source stop_;
  Mutex mutex_;
  uint64_t events_ ABSL_GUARDED_BY(mutex_) = 0;  // incremented by each change
  Backoff backoff_ ABSL_GUARDED_BY(mutex_);      // of all deliveries, without a connection
  // The end of the last wait of backoff_: no lane that rests delivers before it.
  absl::Duration not_before_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  // Each delivers one result at a time. Empty before Start; they stop without the mutex.
  std::vector<std::unique_ptr<ScheduledTask>> lanes_ ABSL_GUARDED_BY(mutex_);
  ScheduledTask sweep_;
  std::shared_ptr<void> watch_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_H_
