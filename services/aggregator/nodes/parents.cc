#include "services/aggregator/nodes/parents.h"

#include <set>

#include "services/common/base/status_macros.h"
#include "services/common/errors/joining.h"

namespace muster {
namespace {

// The limit of visited relays; the relays themselves refuse a longer loop.
constexpr size_t kMaxSeen = 1'000;

void Append(const std::vector<std::string>& from, std::vector<std::string>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

}  // namespace

absl::StatusOr<ParentTargets> FindParentTargets(StateStore& store,
                                                const std::vector<std::string>& parents) {
  ParentTargets targets;
  for (const std::string& parent : parents) {
    ASSIGN_OR_RETURN(const auto relay, store.GetNode(parent));
    if (!relay || !relay->relay || relay->revoked_at != 0) continue;
    Append(relay->relay_targets, &targets.relay_targets);
    Append(relay->join_targets, &targets.join_targets);
  }
  return targets;
}

absl::Status CheckNoLoop(StateStore& store, const std::string& relay,
                         const std::vector<std::string>& parents) {
  std::set<std::string> seen;
  std::vector<std::string> open = parents;
  while (!open.empty() && seen.size() < kMaxSeen) {
    const std::string name = open.back();
    open.pop_back();
    if (name == relay) return errors::RelayWouldLoop(relay, parents.front());
    if (!seen.insert(name).second) continue;
    ASSIGN_OR_RETURN(const auto member, store.GetNode(name));
    if (member) Append(member->parents, &open);
  }
  return absl::OkStatus();
}

}  // namespace muster
