// Routes that children still offer to nodes and relays that are routed through another child.
#ifndef MUSTER_SERVICES_RELAY_TOPOLOGY_OTHER_ROUTES_H_
#define MUSTER_SERVICES_RELAY_TOPOLOGY_OTHER_ROUTES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "services/relay/topology/topology_entry.h"

namespace muster {

// A child relay reports a change once. A hello or a report of a dead stream that arrives late
// changes the route, and its end follows. The relay that has the node does not report it again, so
// its report is kept here as long as that relay does not withdraw it. Not thread-safe.
class OtherRoutes {
 public:
  static constexpr size_t kMaxRoutes = 4;  // of one name; the oldest is removed

  struct Route {
    std::string child;     // that reported it
    uint64_t listing = 0;  // of the stream of that child
    TopologyEntry is;
  };

  // Replaces the route of the same child.
  void Add(Route route);
  // The child does not have this descendant any more, or is its present route.
  void Remove(const std::string& name, std::string_view child);
  // The descendant is removed.
  void RemoveAll(const std::string& name) { routes_.erase(name); }
  // The child has left.
  void RemoveChild(std::string_view child);
  // Removes the routes that the present stream of the child has not reported.
  void RemoveUnlisted(std::string_view child, uint64_t listing);

  // Removes and returns the route with the latest statement, unless all have expired.
  std::optional<Route> DequeueLatest(const std::string& name, absl::Time now);

  // The number of names.
  size_t size() const { return routes_.size(); }

 private:
  template <typename Predicate>
  void RemoveIf(const Predicate& matches);

  absl::flat_hash_map<std::string, std::vector<Route>> routes_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TOPOLOGY_OTHER_ROUTES_H_
