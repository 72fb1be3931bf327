// The relays that somebody is told to hang below.
#ifndef MUSTER_SERVICES_AGGREGATOR_NODES_PARENTS_H_
#define MUSTER_SERVICES_AGGREGATOR_NODES_PARENTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/store/state_store.h"

namespace muster {

inline constexpr size_t kMaxParents = 8;

// Where the relays of these names are reached, in their order: "host:port". Those that are gone or
// revoked meanwhile are left out: the relay at the centre, which comes after them, is always there.
struct ParentTargets {
  std::vector<std::string> relay_targets;
  std::vector<std::string> join_targets;
};
absl::StatusOr<ParentTargets> FindParentTargets(StateStore& store,
                                                const std::vector<std::string>& parents);

// FAILED_PRECONDITION (RELAY_LOOP) if one of the parents, or one above it, is `relay`, as far as
// the register tells.
absl::Status CheckNoLoop(StateStore& store, const std::string& relay,
                         const std::vector<std::string>& parents);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_NODES_PARENTS_H_
