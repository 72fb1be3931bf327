#include "services/relay/topology/topology.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/relay.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

// An entry is forgotten some time after `since`, which a child relay has told.
absl::Time Plausible(absl::Time since, absl::Time now) {
  constexpr absl::Duration kMaxSkew = absl::Hours(24);
  return since > now + kMaxSkew ? now : since;
}

// Seconds between the statement for a new parent and the end of the attachment to the former one.
constexpr int64_t kAdoption = 60;

int64_t Expires(const TopologyEntry& entry) {
  return entry.statement == nullptr ? 0 : entry.statement->expire_time().seconds();
}

}  // namespace

void Topology::Listen(OnReachable reachable, RelayChanged relay_changed) {
  on_reachable_ = std::move(reachable);
  relay_changed_ = std::move(relay_changed);
}

std::vector<std::string> Topology::path() const {
  MutexLock lock(mutex_);
  return path_.empty() ? std::vector<std::string>{options_.name} : path_;
}

void Topology::SetPath(std::vector<std::string> path) {
  MutexLock lock(mutex_);
  path_ = std::move(path);
}

// A relay is attached once, and is never its own descendant.
absl::Status Topology::CheckPlace(const TopologyEntry& entry) const {
  if (!entries_.contains(entry.name) && entries_.size() >= options_.max_entries) {
    return errors::TooManyChildren(static_cast<int64_t>(options_.max_entries));
  }
  if (!entry.is_relay) return absl::OkStatus();
  if (entry.name == options_.name ||
      std::find(path_.begin(), path_.end(), entry.name) != path_.end()) {
    return errors::RelayLoop(entry.name, options_.name);
  }
  const size_t depth = std::max<size_t>(path_.size(), 1) + 1;
  if (depth > kMaxDepth) return errors::RelayTooDeep(entry.name, kMaxDepth);
  return absl::OkStatus();
}

absl::Status Topology::MayAttach(const TopologyEntry& entry) const {
  MutexLock lock(mutex_);
  return CheckPlace(entry);
}

absl::StatusOr<std::shared_ptr<ChildLink>> Topology::Attach(TopologyEntry entry,
                                                            std::shared_ptr<ChildLink> link) {
  Changes changes;
  std::shared_ptr<ChildLink> old;
  {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(CheckPlace(entry));
    const std::string name = entry.name;
    Direct& direct = direct_[name];
    old = std::exchange(direct.link, std::move(link));
    direct.listing = ++listings_;
    direct.complete = !entry.is_relay;
    // The stream is new, even if the child was attached before.
    entries_[name].via.clear();
    MarkAttached(entries_[name], std::move(entry), name, changes);
  }
  Notify(changes);
  return old;
}

void Topology::Refresh(const std::string& name, const ChildLink* link,
                       std::shared_ptr<const v1::AttachStatement> statement) {
  MutexLock lock(mutex_);
  const auto direct = direct_.find(name);
  if (direct == direct_.end() || direct->second.link.get() != link) return;
  Entry& entry = entries_[name];
  entry.is.statement = std::move(statement);
  NoteChanged(entry.is);
}

void Topology::Detach(const std::string& name, const ChildLink* link) {
  Changes changes;
  std::shared_ptr<ChildLink> last;  // released without the mutex
  {
    MutexLock lock(mutex_);
    const auto direct = direct_.find(name);
    if (direct == direct_.end() || direct->second.link.get() != link) return;
    last = std::move(direct->second.link);
    direct_.erase(direct);
    const bool is_relay = entries_[name].is.is_relay;
    if (is_relay) {
      for (auto& [other, entry] : entries_) {
        if (entry.via == name) MarkDetached(entry, changes);
      }
    } else {
      MarkDetached(entries_[name], changes);
    }
  }
  Notify(changes);
}

absl::Status Topology::ApplyUpdate(const std::string& child, std::vector<TopologyEntry> entries,
                                   const std::vector<std::string>& forgotten_uris, bool complete) {
  Changes changes;
  std::map<std::string, std::shared_ptr<ChildLink>> replaced;
  absl::Status refused;
  {
    MutexLock lock(mutex_);
    const auto direct = direct_.find(child);
    if (direct == direct_.end()) return absl::OkStatus();
    for (TopologyEntry& is : entries) {
      // This finds loops among descendants, too: no ancestor is a descendant of a relay.
      if (const absl::Status s = CheckPlace(is); !s.ok()) {
        refused = s;
        continue;
      }
      const std::string name = is.name;
      // An entry with a stream to this relay is a child, and the update is older, unless its
      // statement is newer: the node has moved, and its stream to this relay is dead.
      if (const auto held = direct_.find(name); held != direct_.end()) {
        if (!is.attached || Expires(is) <= Expires(entries_[name].is)) continue;
        replaced[name] = std::move(held->second.link);
        direct_.erase(held);
        for (auto& [other, entry] : entries_) {
          if (entry.via == name && other != name) MarkDetached(entry, changes);
        }
      }
      is.since = Plausible(is.since, clock_.Now());
      const auto known = entries_.find(name);
      // Unknown detached entries are accepted in the first list only: a later one was removed here.
      // Without a statement they may be invented.
      if (!is.attached && known == entries_.end() &&
          (direct->second.complete || is.statement == nullptr)) {
        continue;
      }
      // A former parent has an older statement. The new parent may have one that was signed shortly
      // before the last one for the former parent.
      if (is.attached && known != entries_.end() && known->second.is.attached &&
          known->second.via != child && Expires(is) + kAdoption < Expires(known->second.is)) {
        continue;
      }
      Entry& entry = entries_[name];
      if (is.attached) {
        entry.listing = direct->second.listing;
        MarkAttached(entry, std::move(is), child, changes);
      } else if (entry.via == child || entry.via.empty()) {
        entry.listing = direct->second.listing;
        if (entry.is.name.empty()) {
          entry.is = std::move(is);
          entry.last_via = child;
        }
        MarkDetached(entry, changes);
      }
    }
    if (complete && !direct->second.complete) {
      direct->second.complete = true;
      for (auto& [name, entry] : entries_) {
        if (entry.via == child && name != child && entry.listing != direct->second.listing) {
          MarkDetached(entry, changes);
        }
      }
    }
  }
  for (const auto& [name, link] : replaced) link->End(errors::ChildTakenOver(name));
  Notify(changes);
  for (const std::string& uri : forgotten_uris) ForgetDescendant(child, uri);
  return refused;
}

// A relay forgets its own descendants only, and not those that have moved away from it.
void Topology::ForgetDescendant(const std::string& child, const std::string& uri) {
  Changes changes;
  {
    MutexLock lock(mutex_);
    const auto it = FindSubject(uri);
    if (it == entries_.end() || direct_.contains(it->first)) return;
    const Entry& entry = it->second;
    if ((entry.via.empty() ? entry.last_via : entry.via) != child) return;
    Remove(it, changes);
  }
  Notify(changes);
}

void Topology::MarkAttached(Entry& entry, TopologyEntry is, const std::string& via,
                            Changes& changes) {
  // A node that attached again since the last update may have lost what was sent to it.
  const bool same_route = entry.is.attached && entry.via == via && entry.is.since == is.since;
  if (!entry.is.attached) ++attached_;
  const bool relay_attached = is.is_relay && !entry.is.attached;
  entry.is = std::move(is);
  entry.via = entry.last_via = via;
  entry.is.attached = true;
  if (!same_route) changes.reachable.push_back(entry.is.name);
  if (relay_attached) changes.relays.emplace_back(entry.is.name, true);
  NoteChanged(entry.is);
}

void Topology::MarkDetached(Entry& entry, Changes& changes) {
  entry.via.clear();
  if (!entry.is.attached) return;
  --attached_;
  entry.is.attached = false;
  entry.is.since = clock_.Now();
  if (entry.is.is_relay) changes.relays.emplace_back(entry.is.name, false);
  NoteChanged(entry.is);
}

void Topology::NoteChanged(const TopologyEntry& is) {
  if (options_.is_root) return;
  changed_.emplace(!is.is_relay, is.name);
}

void Topology::Notify(const Changes& changes) {
  if (!changes.reachable.empty() && on_reachable_) on_reachable_(changes.reachable);
  if (relay_changed_) {
    for (const auto& [relay, attached] : changes.relays) relay_changed_(relay, attached);
  }
}

std::shared_ptr<ChildLink> Topology::Route(std::string_view name) const {
  MutexLock lock(mutex_);
  const auto entry = entries_.find(name);
  if (entry == entries_.end() || entry->second.via.empty()) return nullptr;
  const auto direct = direct_.find(entry->second.via);
  return direct == direct_.end() ? nullptr : direct->second.link;
}

std::string Topology::NextHop(std::string_view name) const {
  MutexLock lock(mutex_);
  const auto entry = entries_.find(name);
  return entry == entries_.end() ? "" : entry->second.via;
}

bool Topology::IsDownstreamOf(std::string_view node, std::string_view child) const {
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

std::optional<TopologyEntry> Topology::Find(std::string_view name) const {
  MutexLock lock(mutex_);
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return std::nullopt;
  return entry->second.is;
}

std::vector<TopologyEntry> Topology::List(const std::string& after, size_t limit,
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

std::vector<std::string> Topology::Nodes() const {
  std::vector<std::string> names;
  MutexLock lock(mutex_);
  for (const auto& [name, entry] : entries_) {
    if (!entry.is.is_relay) names.push_back(name);
  }
  return names;
}

int64_t Topology::CountDescendants(const std::string& relay) const {
  MutexLock lock(mutex_);
  int64_t count = 0;
  for (const auto& [name, entry] : entries_) {
    if (!entry.is.attached) continue;
    // Follows the parents up to the relay. The limit on steps protects against loops.
    std::string_view ancestor = entry.is.relay;
    for (size_t step = 0; step < kMaxDepth && !ancestor.empty(); ++step) {
      if (ancestor == relay) {
        ++count;
        break;
      }
      const auto next = entries_.find(ancestor);
      ancestor = next == entries_.end() ? std::string_view() : next->second.is.relay;
    }
  }
  return count;
}

std::vector<std::shared_ptr<ChildLink>> Topology::Children() const {
  std::vector<std::shared_ptr<ChildLink>> links;
  MutexLock lock(mutex_);
  for (const auto& [name, direct] : direct_) links.push_back(direct.link);
  return links;
}

std::vector<std::shared_ptr<ChildLink>> Topology::ChildRelays() const {
  std::vector<std::shared_ptr<ChildLink>> links;
  MutexLock lock(mutex_);
  for (const auto& [name, direct] : direct_) {
    const auto entry = entries_.find(name);
    if (entry != entries_.end() && entry->second.is.is_relay) links.push_back(direct.link);
  }
  return links;
}

// Relays come first, and after their own relay: the receiver rejects an entry whose relay it does
// not know. They are ordered by name, so "r10", which is attached to "r9", would precede it.
Topology::Entries::iterator Topology::DequeueChanged() {
  auto next = changed_.begin();
  for (size_t depth = 0; depth < kMaxDepth; ++depth) {
    const auto entry = entries_.find(next->second);
    if (entry == entries_.end()) break;
    const auto relay = changed_.find({false, entry->second.is.relay});
    if (relay == changed_.end()) break;
    next = relay;
  }
  const auto entry = entries_.find(next->second);
  changed_.erase(next);
  return entry;
}

v1::AttachRequest::TopologyUpdate Topology::DequeueChanges(size_t limit, bool all) {
  v1::AttachRequest::TopologyUpdate update;
  MutexLock lock(mutex_);
  if (all) {
    for (const auto& [name, entry] : entries_) changed_.emplace(!entry.is.is_relay, name);
  }
  while (!changed_.empty() && static_cast<size_t>(update.descendants_size()) < limit) {
    const auto entry = DequeueChanged();
    if (entry == entries_.end()) continue;
    const TopologyEntry& is = entry->second.is;
    v1::AttachRequest::TopologyUpdate::Descendant& child = *update.add_descendants();
    if (is.statement != nullptr) {
      *child.mutable_statement() = *is.statement;
    } else {
      child.mutable_statement()->set_child(is.uri);
    }
    child.set_relay(is.relay);
    child.set_attached(is.attached);
    ToProto(is.since, child.mutable_change_time());
  }
  for (const std::string& uri : std::exchange(forgotten_, {})) update.add_forgotten_uris(uri);
  return update;
}

bool Topology::HasChanges() const {
  MutexLock lock(mutex_);
  return !changed_.empty() || !forgotten_.empty();
}

Topology::Entries::iterator Topology::FindSubject(const std::string& subject) {
  return std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return entry.second.is.uri == subject || entry.second.is.certificate == subject;
  });
}

void Topology::Remove(Entries::iterator it, Changes& changes) {
  MarkDetached(it->second, changes);
  changed_.erase({!it->second.is.is_relay, it->first});
  if (!options_.is_root) forgotten_.insert(it->second.is.uri);
  entries_.erase(it);
}

void Topology::Forget(const std::string& subject) {
  Changes changes;
  std::shared_ptr<ChildLink> link;
  std::string uri;
  {
    MutexLock lock(mutex_);
    const auto it = FindSubject(subject);
    if (it == entries_.end()) return;
    uri = it->second.is.uri;
    if (const auto direct = direct_.find(it->first); direct != direct_.end()) {
      link = direct->second.link;
      direct_.erase(direct);
      for (auto& [name, entry] : entries_) {
        if (entry.via == it->first && name != it->first) MarkDetached(entry, changes);
      }
    }
    Remove(it, changes);
  }
  if (link != nullptr) link->End(errors::IdentityRevoked(uri));
  Notify(changes);
}

void Topology::Tick() {
  const absl::Time now = clock_.Now();
  Changes changes;
  std::vector<std::shared_ptr<ChildLink>> ended;
  {
    MutexLock lock(mutex_);
    for (auto it = entries_.begin(); it != entries_.end();) {
      Entry& entry = it->second;
      const bool ends = entry.is.attached && entry.is.statement != nullptr &&
                        entry.is.statement->expire_time().seconds() < absl::ToUnixSeconds(now);
      if (ends) {
        const auto direct = direct_.find(it->first);
        if (direct != direct_.end()) ended.push_back(direct->second.link);
        if (direct == direct_.end()) MarkDetached(entry, changes);
      }
      const bool old = !entry.is.attached && entry.is.since + kRemembered < now;
      it = old ? entries_.erase(it) : std::next(it);
    }
  }
  for (const auto& link : ended) link->End(errors::StatementExpired());
  Notify(changes);
}

std::vector<TopologyEntry> Topology::Snapshot() const {
  std::vector<TopologyEntry> all;
  MutexLock lock(mutex_);
  all.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) all.push_back(entry.is);
  return all;
}

void Topology::Restore(const std::vector<TopologyEntry>& entries) {
  MutexLock lock(mutex_);
  for (const TopologyEntry& is : entries) {
    Entry& entry = entries_[is.name];
    entry.is = is;
    entry.is.attached = false;
    entry.is.since = Plausible(is.since, clock_.Now());
    entry.is.statement = nullptr;
  }
}

size_t Topology::children() const {
  MutexLock lock(mutex_);
  return direct_.size();
}

size_t Topology::attached() const {
  MutexLock lock(mutex_);
  return attached_;
}

}  // namespace muster
