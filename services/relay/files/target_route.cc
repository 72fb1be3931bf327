#include "services/relay/files/target_route.h"

namespace muster {

TargetRoute FindTargetRoute(const TopologyView& tree, const std::string& node) {
  using Kind = TargetRoute::Kind;
  const auto entry = tree.Find(node);
  if (!entry || entry->is_relay) return {Kind::kUnknown, "", false};
  if (entry->relay == tree.name()) return {Kind::kLocal, "", entry->attached};
  const std::string via = entry->attached ? tree.NextHop(node) : tree.NextHop(entry->relay);
  if (via.empty()) return {Kind::kUnreachable, "", false};
  return {Kind::kDownstream, via, entry->attached};
}

}  // namespace muster
