// A node or relay of the topology.
#ifndef MUSTER_SERVICES_RELAY_TOPOLOGY_TOPOLOGY_ENTRY_H_
#define MUSTER_SERVICES_RELAY_TOPOLOGY_TOPOLOGY_ENTRY_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"

namespace muster {

// The maximum number of relays in a row, the root relay included.
inline constexpr size_t kMaxDepth = 20;

// The most bytes of a link's description.
inline constexpr size_t kMaxLinkText = 1024;

// A descendant of this relay. A value.
struct TopologyEntry {
  std::string name;
  std::string uri;
  bool is_relay = false;
  std::string relay;  // its current or last parent
  bool attached = false;
  absl::Time since;  // when it was attached or detached, by the clock of its parent
  // When this relay learned of that attachment; set by Topology.
  absl::Time known_since;
  // The last certificate: "<issuer key id>:<serial>" (identity/revocation.h).
  std::string certificate;
  // The last statement for that relay; null if it is not known since a restart.
  std::shared_ptr<const v1::AttachStatement> statement;
  // The process of a child of this relay, a random text, and when that started (monotonic).
  std::string instance;
  absl::Duration began;
  // When an older process with the same identity was refused last.
  absl::Time duplicate_agent_at = absl::InfinitePast();
  // How it is connected, in its own words, if that is a tunnel; empty otherwise. At most
  // kMaxLinkText bytes.
  std::string link;
  // The last one that it sent; null: none.
  std::shared_ptr<const v1::NodeInfo> info;

  // Returns `since`, but no time that is in the future by the clock of this relay.
  absl::Time ChangeTime() const { return attached ? std::min(since, known_since) : since; }
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TOPOLOGY_TOPOLOGY_ENTRY_H_
