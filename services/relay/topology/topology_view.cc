#include "services/relay/topology/topology_view.h"

namespace muster {

std::vector<std::string> TopologyView::path() const {
  MutexLock lock(mutex_);
  return path_.empty() ? std::vector<std::string>{name_} : path_;
}

std::shared_ptr<ChildLink> TopologyView::Route(std::string_view name) const {
  MutexLock lock(mutex_);
  const auto entry = entries_.find(name);
  if (entry == entries_.end() || entry->second.via.empty()) return nullptr;
  const auto direct = direct_.find(entry->second.via);
  return direct == direct_.end() ? nullptr : direct->second.link;
}

std::string TopologyView::NextHop(std::string_view name) const {
  MutexLock lock(mutex_);
  const auto entry = entries_.find(name);
  return entry == entries_.end() ? "" : entry->second.via;
}

bool TopologyView::IsDownstreamOf(std::string_view node, std::string_view child) const {
  MutexLock lock(mutex_);
  const auto entry = entries_.find(node);
  if (entry == entries_.end() || entry->second.is.is_relay) return false;
  if (entry->second.is.attached) return entry->second.via == child;
  if (!entry->second.last_via.empty()) return entry->second.last_via == child;
  // After a restart of this relay.
  const std::string& parent = entry->second.is.relay;
  const auto route = entries_.find(parent);
  return parent == child || (route != entries_.end() && route->second.via == child);
}

std::optional<TopologyEntry> TopologyView::Find(std::string_view name) const {
  MutexLock lock(mutex_);
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return std::nullopt;
  return entry->second.is;
}

std::vector<TopologyEntry> TopologyView::List(const std::string& after, size_t limit,
                                              const std::string& relay, bool attached_only) const {
  std::vector<TopologyEntry> list;
  MutexLock lock(mutex_);
  for (auto it = entries_.upper_bound(after); it != entries_.end() && list.size() < limit; ++it) {
    const TopologyEntry& is = it->second.is;
    if ((!relay.empty() && is.relay != relay) || (attached_only && !is.attached)) continue;
    list.push_back(is);
  }
  return list;
}

std::vector<std::string> TopologyView::Nodes() const {
  std::vector<std::string> names;
  MutexLock lock(mutex_);
  for (const auto& [name, entry] : entries_) {
    if (!entry.is.is_relay) names.push_back(name);
  }
  return names;
}

absl::flat_hash_map<std::string, int64_t> TopologyView::CountDescendants() const {
  absl::flat_hash_map<std::string, int64_t> counts;
  MutexLock lock(mutex_);
  for (const auto& [name, entry] : entries_) {
    if (!entry.is.attached) continue;
    // The limit on steps protects against loops.
    auto relay = entries_.find(entry.is.relay);
    for (size_t step = 0; step < kMaxDepth && relay != entries_.end(); ++step) {
      ++counts[relay->first];
      relay = entries_.find(relay->second.is.relay);
    }
  }
  return counts;
}

std::vector<std::shared_ptr<ChildLink>> TopologyView::Children() const {
  std::vector<std::shared_ptr<ChildLink>> links;
  MutexLock lock(mutex_);
  for (const auto& [name, direct] : direct_) links.push_back(direct.link);
  return links;
}

std::vector<std::shared_ptr<ChildLink>> TopologyView::ChildRelays() const {
  std::vector<std::shared_ptr<ChildLink>> links;
  MutexLock lock(mutex_);
  for (const auto& [name, direct] : direct_) {
    if (entries_.at(name).is.is_relay) links.push_back(direct.link);
  }
  return links;
}

size_t TopologyView::children() const {
  MutexLock lock(mutex_);
  return direct_.size();
}

size_t TopologyView::attached() const {
  MutexLock lock(mutex_);
  return attached_;
}

size_t TopologyView::size() const {
  MutexLock lock(mutex_);
  return entries_.size();
}

}  // namespace muster
