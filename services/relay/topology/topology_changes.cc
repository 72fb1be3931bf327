#include "services/relay/topology/topology_changes.h"

#include "services/common/rpc/proto_time.h"

namespace muster {

// An entry that is back is not forgotten any more.
void TopologyChanges::Add(const TopologyEntry& entry) {
  removed_.erase(entry.uri);
  changed_.insert({!entry.is_relay, entry.name});
}

void TopologyChanges::AddRemoved(const TopologyEntry& entry) {
  changed_.erase({!entry.is_relay, entry.name});
  removed_.insert(entry.uri);
}

// A relay follows its own relay, because the receiver rejects an entry whose relay it does not
// know. The names are in order, so "r10", which is attached to "r9", would precede it.
const TopologyEntry* TopologyChanges::DequeueEntry(FindEntry find) {
  auto next = changed_.begin();
  for (size_t depth = 0; depth < kMaxDepth; ++depth) {
    const TopologyEntry* entry = find(next->name);
    if (entry == nullptr) break;
    const auto relay = changed_.find({/*is_node=*/false, entry->relay});
    if (relay == changed_.end()) break;
    next = relay;
  }
  const TopologyEntry* entry = find(next->name);
  changed_.erase(next);
  return entry;
}

v1::AttachRequest::TopologyUpdate TopologyChanges::Dequeue(size_t limit, FindEntry find) {
  v1::AttachRequest::TopologyUpdate update;
  while (!changed_.empty() && static_cast<size_t>(update.descendants_size()) < limit) {
    const TopologyEntry* entry = DequeueEntry(find);
    if (entry == nullptr) continue;
    v1::AttachRequest::TopologyUpdate::Descendant& descendant = *update.add_descendants();
    if (entry->statement != nullptr) {
      *descendant.mutable_statement() = *entry->statement;
    } else {
      descendant.mutable_statement()->set_child(entry->uri);
    }
    descendant.set_relay(entry->relay);
    descendant.set_attached(entry->attached);
    ToProto(entry->since, descendant.mutable_change_time());
    if (entry->attached) descendant.set_link(entry->link);
    if (entry->info != nullptr) *descendant.mutable_info() = *entry->info;
    if (entry->duplicate_agent_at != absl::InfinitePast()) {
      ToProto(entry->duplicate_agent_at, descendant.mutable_duplicate_agent_time());
    }
  }
  while (!removed_.empty() && static_cast<size_t>(update.forgotten_uris_size()) < limit) {
    update.add_forgotten_uris(removed_.extract(removed_.begin()).value());
  }
  return update;
}

}  // namespace muster
