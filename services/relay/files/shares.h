// Shared files at a relay: the store, the service, and the router, connected.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARES_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARES_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/metrics.h"
#include "services/common/base/timers.h"
#include "services/common/rpc/call.h"
#include "services/relay/files/share_parent.h"
#include "services/relay/files/share_router.h"
#include "services/relay/files/share_service.h"
#include "services/relay/files/share_store.h"

namespace muster {

struct SharesOptions {
  ShareStoreOptions store;
  ShareRouter::Times times;
  std::string fleet;
  bool is_root = true;
};

// Thread-safe.
class Shares {
 public:
  // The objects of the relay that shared files use. All of them outlive the Shares.
  struct Environment {
    const TopologyView& tree;
    SharePeers& peers;
    const ShareTrust& trust;
    const Clock& clock;
    TimerService& timers;
    Metrics& metrics;
  };

  // Recovers the files of an earlier process. The executor of `runtime` is not used; its other
  // objects outlive this one.
  static absl::StatusOr<std::unique_ptr<Shares>> Open(SharesOptions options,
                                                      const Environment& environment,
                                                      RpcRuntime runtime);
  // The server has stopped.
  ~Shares();

  // Starts the router. Once, when there may be a parent.
  void Start() { router_->Start(); }
  grpc::Service* service() { return &*service_; }
  // The topology changed: the router looks for files that can move.
  void Wake() { router_->Wake(); }
  // Handles the messages of the parent about shared files, and ignores others. Does not wait.
  void HandleMessage(const v1::AttachResponse& message);
  // Stops the router and cancels its calls. The parent is not used afterwards.
  void StopRouter();

 private:
  Shares();

  Executor disk_;
  std::unique_ptr<ShareStore> store_;
  std::optional<ShareAggregatorClient> aggregator_;
  std::unique_ptr<ShareParent> parent_;
  std::unique_ptr<ShareRouter> router_;
  // The work of the router; drained before the router is destroyed.
  Executor upstream_;
  Executor downstream_;
  std::optional<LocalShareIndex> local_index_;
  std::optional<ShareQueries> queries_;
  std::optional<FleetShareIndex> fleet_index_;
  std::optional<ShareService> service_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARES_H_
