// All that a relay forwards, put together: the services that make it look like aggregator and
// status.
#ifndef MUSTER_SERVICES_RELAY_PROXY_FORWARDING_H_
#define MUSTER_SERVICES_RELAY_PROXY_FORWARDING_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/base/config.h"
#include "services/common/base/executor.h"
#include "services/common/base/metrics.h"
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

// Made before the server and stopped after it. Thread-safe.
class Forwarding {
 public:
  struct Parts {
    Upstream& upstream;
    RpcRuntime runtime;
    const Clock& clock;
    Metrics& metrics;
    // This relay, and what signatures lead to.
    std::string relay;
    std::string fleet;
    std::string fleet_ca_pem;
    std::string spool_folder;
  };

  // Takes over the spool of an earlier life: waits for the disk.
  static absl::StatusOr<std::unique_ptr<Forwarding>> Start(const ForwardingConfig& config,
                                                           const Parts& parts);
  virtual ~Forwarding() = default;

  // ResultService, RunService, StatusService, HeartbeatService, and JoinService for child relays:
  // for the listener with mutual TLS.
  virtual std::vector<grpc::Service*> services() = 0;
  // JoinService, for the open listener too.
  virtual grpc::Service* join_service() = 0;

  // Ends the streams that it holds open itself, so that the server can stop. Call it before that.
  virtual void EndStreams() = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_FORWARDING_H_
