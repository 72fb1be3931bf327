// Shared files at a relay, put together: the store, the service, the way up and down.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARES_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARES_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/executor.h"
#include "services/common/rpc/call.h"
#include "services/relay/files/share_router.h"
#include "services/relay/files/share_service.h"
#include "services/relay/files/share_store.h"

namespace muster {

struct SharesOptions {
  ShareStoreOptions store;
  ShareRouter::Times times;
  std::string fleet;
  bool is_root = true;
  // As in ShareParts.
  std::function<std::shared_ptr<grpc::Channel>()> parent;
  std::function<std::shared_ptr<grpc::Channel>()> aggregator;
  std::function<std::vector<Certificate>()> roots;
  std::function<bool(const std::string& node)> is_revoked;
};

// Thread-safe.
class Shares {
 public:
  // Takes over what an earlier life left. `runtime`: its executor is not used; all else outlives
  // it.
  static absl::StatusOr<std::unique_ptr<Shares>> Open(SharesOptions options, const Topology& tree,
                                                      const Clock& clock, RpcRuntime runtime,
                                                      Metrics& metrics);
  // The server has to have stopped.
  ~Shares();

  // Begins to pass files on. Once, when there may be a parent.
  void Start() { router_->Start(); }
  grpc::Service* service() { return &*service_; }
  // Somebody came, or went: there may be something to pass on.
  void Wake() { router_->Wake(); }
  // From the parent; what is not about shared files is ignored. Does not wait.
  void HandleMessage(const v1::AttachResponse& message);
  // Ends what is under way up and down; the parent may go then.
  void StopRouter();

 private:
  Shares();

  Executor disk_;
  std::unique_ptr<ShareStore> store_;
  std::optional<ShareAggregatorClient> aggregator_;
  std::unique_ptr<ShareRouter> router_;
  std::optional<LocalShareIndex> local_index_;
  std::optional<ShareQueries> queries_;
  std::optional<FleetShareIndex> fleet_index_;
  std::optional<ShareService> service_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARES_H_
