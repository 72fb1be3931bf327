// The changes of a topology that the parent has not received yet.
#ifndef MUSTER_SERVICES_RELAY_TOPOLOGY_TOPOLOGY_CHANGES_H_
#define MUSTER_SERVICES_RELAY_TOPOLOGY_TOPOLOGY_CHANGES_H_

#include <compare>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "muster/v1/attachment.pb.h"
#include "services/relay/topology/topology_entry.h"

namespace muster {

// Stores which entries have changed; their content is read when they are sent. Not thread-safe.
class TopologyChanges {
 public:
  // Returns the entry with this name as it is now; null if it was removed.
  using FindEntry = absl::FunctionRef<const TopologyEntry*(const std::string& name)>;

  // The entry was attached or detached, or has a new statement.
  void Add(const TopologyEntry& entry);
  // The entry was removed, and is forgotten by the ancestors too.
  void AddRemoved(const TopologyEntry& entry);

  bool empty() const { return changed_.empty() && removed_.empty(); }

  // Removes and returns at most `limit` changes: relays first, and each after its own relay.
  v1::AttachRequest::TopologyUpdate Dequeue(size_t limit, FindEntry find);

 private:
  // Nodes follow relays.
  struct Name {
    bool is_node = false;
    std::string name;
    auto operator<=>(const Name&) const = default;
  };

  const TopologyEntry* DequeueEntry(FindEntry find);

  std::set<Name> changed_;
  std::set<std::string> removed_;  // URIs
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TOPOLOGY_TOPOLOGY_CHANGES_H_
