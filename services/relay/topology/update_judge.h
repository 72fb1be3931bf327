// The rules by which a relay believes an entry in the topology update of a child relay.
#ifndef MUSTER_SERVICES_RELAY_TOPOLOGY_UPDATE_JUDGE_H_
#define MUSTER_SERVICES_RELAY_TOPOLOGY_UPDATE_JUDGE_H_

#include <string_view>

#include "services/relay/topology/topology_entry.h"

namespace muster {

// The effect of a reported entry.
enum class UpdateEffect {
  kNone,      // It is older than what this relay knows, or it may be invented.
  kAttach,    // The entry is attached and routed through the child that reported it.
  kTakeOver,  // As kAttach, and the stream of the entry to this relay is dead.
  kAdd,       // A detached entry becomes known.
  kDetach,    // The entry is unreachable.
};

// The knowledge of a relay about the subject of a reported entry. The fields outlive the call of
// JudgeUpdate.
struct KnownSubject {
  const TopologyEntry* entry = nullptr;  // null: unknown
  std::string_view via;                  // the child that it is routed through; or empty
  bool has_stream = false;               // it is itself a child of this relay
};

// Returns the effect of an entry that `child` reported. The caller has verified its statement.
// `first_list`: the child has not completed its first list of descendants. A pure function.
UpdateEffect JudgeUpdate(const TopologyEntry& reported, const KnownSubject& known,
                         std::string_view child, bool first_list);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TOPOLOGY_UPDATE_JUDGE_H_
