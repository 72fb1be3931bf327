// Delivers the results of the spool while this relay is connected.
#ifndef MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_H_
#define MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_H_

#include <cstdint>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/relay/proxy/spool_drain_peer.h"
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
  void SweepIfDue() ABSL_LOCKS_EXCLUDED(mutex_);
  void Wait(absl::Duration delay, const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);

  Spool& spool_;
  Upstream& way_;
  UpstreamPeer peer_;
  Mutex mutex_;
  StoppableCondVar wake_;
  uint64_t events_ ABSL_GUARDED_BY(mutex_) = 0;        // number of changes
  absl::Duration next_sweep_ ABSL_GUARDED_BY(mutex_);  // monotonic
  std::shared_ptr<void> watch_;
  std::vector<std::jthread> threads_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_H_
