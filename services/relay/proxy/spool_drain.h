// Delivers what the spool holds, as soon as there is a way up.
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

// Sweeps it, too. Threads of its own, which may wait for disk and network; each carries one result
// at a time. What a later try cannot cure ends a result: it is counted and logged. Thread-safe.
class SpoolDrain {
 public:
  SpoolDrain(Spool& spool, Upstream& upstream);

  // Stops: what is under way is cut off, and delivered by a later life.
  ~SpoolDrain();

 private:
  void Run(const std::stop_token& stop);
  void RunOnce(const std::stop_token& stop);
  void SweepIfDue() ABSL_LOCKS_EXCLUDED(mutex_);
  void Rest(absl::Duration delay, const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Deliver(const SpoolDelivery& delivery, const std::stop_token& stop);
  absl::Status TellExpired(const SpoolDelivery& delivery, const std::stop_token& stop);
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);

  Spool& spool_;
  Upstream& upstream_;
  Mutex mutex_;
  StoppableCondVar wake_;
  uint64_t events_ ABSL_GUARDED_BY(mutex_) = 0;  // how often something changed
  absl::Time swept_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<void> watch_;
  std::vector<std::jthread> threads_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_H_
