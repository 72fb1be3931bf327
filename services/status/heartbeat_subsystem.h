// All about heartbeats, put together.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEAT_SUBSYSTEM_H_
#define MUSTER_SERVICES_STATUS_HEARTBEAT_SUBSYSTEM_H_

#include <functional>
#include <optional>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/metrics.h"
#include "services/common/rpc/call.h"
#include "services/common/service/service_threads.h"
#include "services/status/config.h"
#include "services/status/heartbeat_service.h"
#include "services/status/heartbeats/registry.h"
#include "services/status/heartbeats/sender.h"
#include "services/status/heartbeats/ticker.h"
#include "services/status/status_store.h"

namespace muster {

// What an earlier life knew (registry().Restore), then Begin, then Stop: one thread. What the
// accessors give is thread-safe.
class HeartbeatSubsystem {
 public:
  // All of these outlive it.
  HeartbeatSubsystem(const HeartbeatConfig& config, const RpcRuntime& runtime,
                     ServiceThreads& threads, const Clock& clock, HeartbeatListener& listener,
                     StatusStore& store, std::function<bool(const Caller&)> is_revoked,
                     Metrics& metrics);

  Registry& registry() { return registry_; }
  HeartbeatService& service() { return service_; }

  // Time begins to pass; the service listens on `port`.
  void Begin(int port);

  // Ends all streams, so that the server need not wait for them; what is silent from then on is
  // nobody's fault.
  void Stop();

 private:
  ServiceThreads& threads_;
  StatusStore& store_;
  PeerWatch peers_;
  const absl::Duration tick_;
  Registry registry_;
  HeartbeatService service_;
  std::optional<Ticker> ticker_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEAT_SUBSYSTEM_H_
