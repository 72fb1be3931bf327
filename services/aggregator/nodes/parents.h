// The parents of nodes and relays.
#ifndef MUSTER_SERVICES_AGGREGATOR_NODES_PARENTS_H_
#define MUSTER_SERVICES_AGGREGATOR_NODES_PARENTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/store/state_store.h"

namespace muster {

inline constexpr size_t kMaxParents = 8;

// The addresses of relays, in the order of their names: "host:port". Removed and revoked relays are
// omitted; the root relay, which follows them, always exists.
struct ParentTargets {
  std::vector<std::string> relay_targets;
  std::vector<std::string> join_targets;
};
absl::StatusOr<ParentTargets> FindParentTargets(StateStore& store,
                                                const std::vector<std::string>& parents);

// Fails with FAILED_PRECONDITION (RELAY_LOOP) if `relay` is one of the parents or one of their
// ancestors in the register.
absl::Status CheckNoLoop(StateStore& store, const std::string& relay,
                         const std::vector<std::string>& parents);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_NODES_PARENTS_H_
