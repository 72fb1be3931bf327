// The services by which a relay serves the API of the aggregator, the status service and the jobs
// service.
#ifndef MUSTER_SERVICES_RELAY_PROXY_FORWARDING_H_
#define MUSTER_SERVICES_RELAY_PROXY_FORWARDING_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/base/config.h"
#include "services/common/base/executor.h"
#include "services/common/base/metrics.h"
#include "services/common/base/timers.h"
#include "services/common/rpc/call.h"
#include "services/relay/spool/spool.h"
#include "services/relay/upstream/upstream.h"

namespace grpc {
class Service;
}

namespace muster {

struct ForwardingConfig {
  bool spool = true;
  uint64_t spool_bytes = uint64_t{10} << 30;
  int64_t spool_entries = 10'000;
  absl::Duration spool_ttl = absl::Hours(24);
};

// spool.enabled, spool.max_bytes, spool.max_results, spool.ttl.
void BindForwarding(ForwardingConfig* config, Config* file);

// Created before the server and destroyed after it. Thread-safe.
class Forwarding {
 public:
  struct Parts {
    Upstream& upstream;
    RpcRuntime runtime;
    const Clock& clock;
    Metrics& metrics;
    // The name of this relay, and the fleet with its root CA.
    std::string relay;
    std::string fleet;
    std::string fleet_ca_pem;
    std::string spool_folder;
    TimerService& timers;
    Executor& background;  // of periodic work (service_threads.h)
    // The database of the spool failed: the relay must end.
    std::function<void(const absl::Status&)> fail;
  };

  // Opens the spool; blocks.
  static absl::StatusOr<std::unique_ptr<Forwarding>> Start(const ForwardingConfig& config,
                                                           const Parts& parts);
  virtual ~Forwarding() = default;

  // For the listener with mutual TLS: ResultService, RunService, StatusService,
  // HeartbeatService, ContentService, SecretService, WorkspaceService, and JoinService for
  // child relays.
  virtual std::vector<grpc::Service*> services() = 0;
  // JoinService, for the listener without client certificates.
  virtual grpc::Service* join_service() = 0;

  // Ends the streams of heartbeats, which would not end automatically, and rejects new ones. Called
  // before the server stops.
  virtual void EndStreams() = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_FORWARDING_H_
