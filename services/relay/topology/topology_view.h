// The descendants of this relay and the routes to them, to read.
#ifndef MUSTER_SERVICES_RELAY_TOPOLOGY_TOPOLOGY_VIEW_H_
#define MUSTER_SERVICES_RELAY_TOPOLOGY_TOPOLOGY_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "services/common/base/mutex.h"
#include "services/relay/topology/child_link.h"
#include "services/relay/topology/topology_entry.h"

namespace muster {

// How long a detached node or relay is remembered.
inline constexpr absl::Duration kRemembered = absl::Hours(24 * 7);

// Topology (topology.h) makes the changes. Thread-safe.
class TopologyView {
 public:
  const std::string& name() const { return name_; }
  // The relays from the root relay to this one; only this one until Topology::SetPath.
  std::vector<std::string> path() const;

  // Returns the stream of the next hop to `name`; null if it is unreachable.
  std::shared_ptr<ChildLink> Route(std::string_view name) const;
  // Returns the name of that child, or an empty string.
  std::string NextHop(std::string_view name) const;
  // Returns whether a node is a descendant of this child relay, or was when it was detached: what
  // the node said may arrive after the message that it was detached.
  bool IsDownstreamOf(std::string_view node, std::string_view child) const;

  std::optional<TopologyEntry> Find(std::string_view name) const;
  // Lists entries by name, beginning after `after`; only the children of `relay` if it is not
  // empty.
  std::vector<TopologyEntry> List(const std::string& after, size_t limit, const std::string& relay,
                                  bool attached_only) const;
  // Lists the nodes that are attached, or were attached within kRemembered.
  std::vector<std::string> Nodes() const;
  // Returns the number of attached descendants of each relay that has any.
  absl::flat_hash_map<std::string, int64_t> CountDescendants() const;

  // Return the streams of all children, and of those that are relays.
  std::vector<std::shared_ptr<ChildLink>> Children() const;
  std::vector<std::shared_ptr<ChildLink>> ChildRelays() const;

  // Returns all entries, to be stored over a restart.
  std::vector<TopologyEntry> Snapshot() const { return List("", SIZE_MAX, "", false); }

  size_t children() const;
  size_t attached() const;
  // The number of entries, also of detached ones.
  size_t size() const;

 protected:
  struct Entry {
    TopologyEntry is;
    std::string via;       // the child that it is routed through; empty if unreachable
    std::string last_via;  // the last such child; empty after a restart
    uint64_t listing = 0;  // of the stream whose updates contained it last
  };
  struct Direct {
    std::shared_ptr<ChildLink> link;
    uint64_t listing = 0;   // increases with each stream
    bool complete = false;  // its list of descendants is complete
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  explicit TopologyView(std::string name) : name_(std::move(name)) {}
  ~TopologyView() = default;

  const std::string name_;  // of this relay
  mutable Mutex mutex_;
  std::vector<std::string> path_ ABSL_GUARDED_BY(mutex_);
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Direct> direct_ ABSL_GUARDED_BY(mutex_);
  size_t attached_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TOPOLOGY_TOPOLOGY_VIEW_H_
