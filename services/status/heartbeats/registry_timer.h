// Periodic work for the registry: ticks, and questions to the kernel.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_TIMER_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_TIMER_H_

#include <atomic>
#include <cstdint>
#include <functional>
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
  // `store` gets the senders that changed, once a minute and at the end, on the executor. The
  // references outlive this object.
  RegistryTimer(Registry& registry, absl::Duration period,
                std::function<void(std::vector<SenderRecord>)> store, const Clock& clock,
                TimerService& timers, Executor& executor);

  // Stops, and calls `store` for the last time.
  ~RegistryTimer();

 private:
  void Tick();
  void Store();

  Registry& registry_;
  const absl::Duration period_;
  const std::function<void(std::vector<SenderRecord>)> store_;
  const Clock& clock_;
  absl::Duration store_at_;  // monotonic
  ScheduledTask tick_;       // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_TIMER_H_
