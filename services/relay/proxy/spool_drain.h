// Delivers the results of the spool while there is an upstream connection.
#ifndef MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_H_
#define MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/relay/proxy/result_sender.h"
#include "services/relay/spool/spool.h"
#include "services/relay/upstream/upstream.h"

namespace muster {

// Also sweeps the spool. Runs several threads; each delivers one result at a time and may block.
// A result that is rejected for good is removed, counted and logged. Thread-safe.
class SpoolDrain {
 public:
  // All of it outlives the drain.
  SpoolDrain(Spool& spool, Upstream& upstream, ResultSender& sender, const Clock& clock);

  // Stops; an interrupted delivery is repeated after the next start.
  ~SpoolDrain();

  // Starts the threads. Called once.
  void Start();

  // Delivers at most one result. Returns how long to wait before the next call if nothing changes.
  // Called by the threads; by tests without threads.
  absl::Duration RunOnce(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  void SweepIfDue() ABSL_LOCKS_EXCLUDED(mutex_);
  void Finish(const SpoolDelivery& delivery, const absl::Status& status);
  absl::Duration Requeue(const SpoolDelivery& delivery, const absl::Status& status);
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);

  Spool& spool_;
  Upstream& upstream_;
  ResultSender& sender_;
  const Clock& clock_;
  Mutex mutex_;
  StoppableCondVar wake_;
  uint64_t events_ ABSL_GUARDED_BY(mutex_) = 0;                     // incremented by each change
  std::optional<absl::Duration> swept_at_ ABSL_GUARDED_BY(mutex_);  // monotonic
  std::shared_ptr<void> watch_;
  std::vector<std::jthread> threads_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_H_
