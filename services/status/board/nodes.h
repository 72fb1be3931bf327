// Every node that a run plans or that has sent heartbeats.
#ifndef MUSTER_SERVICES_STATUS_BOARD_NODES_H_
#define MUSTER_SERVICES_STATUS_BOARD_NODES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/v1/status.pb.h"
#include "services/common/base/mutex.h"
#include "services/status/board/reasons.h"
#include "services/status/heartbeats/sender.h"

namespace muster {

// Thread-safe. "global" is no node and is left out.
class Nodes {
 public:
  // A pair of a run is planned for the node, or no longer: as often as there are pairs.
  void Plan(const std::string& node);
  void Unplan(const std::string& node);
  void Heard(const std::shared_ptr<const Sender>& sender);

  // Errors: INVALID_PAGE_SIZE, INVALID_PAGE_TOKEN.
  absl::StatusOr<v1::ListNodesResponse> List(const v1::ListNodesRequest& request,
                                             const Moment& now) const;
  std::optional<v1::Node> Get(const std::string& node, const Moment& now) const;

  // Forgets senders without another reference, except the newest of each planned node.
  void Prune();

 private:
  struct Entry {
    int64_t planned = 0;
    std::vector<std::shared_ptr<const Sender>> senders;
  };

  static v1::Node Show(const std::string& node, const Entry& entry, const Moment& now);

  mutable Mutex mutex_;
  std::map<std::string, Entry> nodes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_NODES_H_
