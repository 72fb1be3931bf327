// The parts of the service that handle heartbeats.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEAT_SUBSYSTEM_H_
#define MUSTER_SERVICES_STATUS_HEARTBEAT_SUBSYSTEM_H_

#include <functional>
#include <optional>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/metrics.h"
#include "services/common/rpc/call.h"
#include "services/common/rpc/statement_budget.h"
#include "services/common/service/service_threads.h"
#include "services/status/config.h"
#include "services/status/heartbeat_service.h"
#include "services/status/heartbeats/registry.h"
#include "services/status/heartbeats/registry_timer.h"
#include "services/status/heartbeats/sender.h"
#include "services/status/status_store.h"

namespace muster {

// One thread calls registry().Restore, then Begin, then Stop. The objects of the accessors are
// thread-safe.
class HeartbeatSubsystem {
 public:
  // The references outlive this object.
  HeartbeatSubsystem(const HeartbeatConfig& config, const RpcRuntime& runtime,
                     ServiceThreads& threads, const Clock& clock, HeartbeatListener& listener,
                     StatusStore& store, std::function<bool(const Caller&)> is_revoked,
                     Metrics& metrics);

  Registry& registry() { return registry_; }
  HeartbeatService& service() { return service_; }

  // Starts the ticks. The service listens on `port`.
  void Begin(int port);

  // Stops the ticks, so that the end of the streams is not taken for silence, and ends all streams,
  // so that the server does not wait for them.
  void Stop();

 private:
  ServiceThreads& threads_;
  StatusStore& store_;
  PeerWatch peers_;
  const absl::Duration tick_;
  StatementBudget statements_;
  Registry registry_;
  HeartbeatService service_;
  std::optional<RegistryTimer> timer_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEAT_SUBSYSTEM_H_
