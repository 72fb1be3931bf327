// Periodic work for the registry: ticks, and questions to the kernel.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_TIMER_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_TIMER_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/status/heartbeats/registry.h"
#include "services/status/heartbeats/tcp_view.h"

namespace muster {

// Asks the kernel about connections. Calls of Query must not overlap.
class PeerWatch {
 public:
  // Sets the port on which the service listens. Called before the first Query.
  void set_local_port(int port) { local_port_ = static_cast<uint16_t>(port); }

  // As Registry::Query requires. Logs the first of several failures.
  std::vector<TcpState> Query(const std::vector<TcpPeer>& peers);

 private:
  std::atomic<uint16_t> local_port_ = 0;
  std::optional<TcpView> view_;
  bool failing_ = false;
};

// Ticks the registry until its end. The registry measures by how much a tick is late; that tells
// whether this process, or its machine, was held up.
class RegistryTimer {
 public:
  // Stores the senders that changed, once a minute and at the end. Those that the journal does
  // not take are stored at the next ticks. The references outlive this object.
  RegistryTimer(Registry& registry, absl::Duration period, const Clock& clock, TimerService& timers,
                Executor& executor);
  ~RegistryTimer();

 private:
  void Tick();

  Registry& registry_;
  const absl::Duration period_;
  const Clock& clock_;
  absl::Duration store_at_;  // monotonic
  ScheduledTask tick_;       // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_TIMER_H_
