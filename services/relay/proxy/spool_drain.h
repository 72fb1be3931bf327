// Delivers the results of the spool while this relay is connected.
#ifndef MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_H_
#define MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_H_

#include <cstdint>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/mutex.h"
#include "services/relay/spool/spool.h"
#include "services/relay/upstream/upstream.h"

namespace muster {

// Its threads wait for disk and network; each delivers one result at a time. A final refusal ends a
// result and is counted and logged. The threads also sweep the spool. Thread-safe.
class SpoolDrain {
 public:
  SpoolDrain(Spool& spool, Upstream& way);

  // Cancels the deliveries in progress; a later process repeats them.
  ~SpoolDrain();

 private:
  void Run(const std::stop_token& stop);
  void RunOnce(const std::stop_token& stop);
  void SweepIfDue() ABSL_LOCKS_EXCLUDED(mutex_);
  void Wait(absl::Duration delay, const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Deliver(const SpoolDelivery& delivery, const std::stop_token& stop);
  absl::Status ReportExpired(const SpoolDelivery& delivery, const std::stop_token& stop);
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);

  Spool& spool_;
  Upstream& way_;
  Mutex mutex_;
  StoppableCondVar wake_;
  uint64_t events_ ABSL_GUARDED_BY(mutex_) = 0;  // number of changes
  absl::Time swept_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<void> watch_;
  std::vector<std::jthread> threads_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_H_
