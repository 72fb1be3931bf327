#include "services/relay/topology/topology.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/relay/topology/update_judge.h"

namespace muster {
namespace {

// Returns a time that a child relay reported, or `now` instead of one that is far ahead. A detached
// entry is removed some time after the result.
absl::Time Plausible(absl::Time reported, absl::Time now) {
  constexpr absl::Duration kMaxSkew = absl::Hours(24);
  return reported > now + kMaxSkew ? now : reported;
}

}  // namespace

void Topology::Listen(OnReachable reachable, RelayChanged relay_changed) {
  on_reachable_ = std::move(reachable);
  relay_changed_ = std::move(relay_changed);
}

void Topology::SetPath(std::vector<std::string> path) {
  MutexLock lock(mutex_);
  path_ = std::move(path);
}

// A relay is attached once, and is never its own descendant.
absl::Status Topology::CheckPlace(const TopologyEntry& entry) const {
  if (!entries_.contains(entry.name) && entries_.size() >= max_entries_) {
    return errors::TooManyChildren(static_cast<int64_t>(max_entries_));
  }
  if (!entry.is_relay) return absl::OkStatus();
  if (entry.name == name() || absl::c_linear_search(path_, entry.name)) {
    return errors::RelayLoop(entry.name, name());
  }
  const size_t depth = std::max<size_t>(path_.size(), 1) + 1;
  if (depth > kMaxDepth) return errors::RelayTooDeep(entry.name, kMaxDepth);
  return absl::OkStatus();
}

// A process that was restarted is younger. An older one has been copied, or had lost its
// connection.
bool Topology::IsOlderProcess(const TopologyEntry& entry) const {
  if (entry.instance.empty() || !direct_.contains(entry.name)) return false;
  const TopologyEntry& present = entries_.find(entry.name)->second.is;
  return entry.instance != present.instance && entry.began < present.began;
}

absl::Status Topology::MayAttach(const TopologyEntry& entry) {
  MutexLock lock(mutex_);
  if (!IsOlderProcess(entry)) return CheckPlace(entry);
  TopologyEntry& present = entries_[entry.name].is;
  present.duplicate_agent_at = clock_.Now();
  NoteChanged(present);
  return errors::DuplicateProcess(entry.name);
}

absl::StatusOr<std::shared_ptr<ChildLink>> Topology::Attach(TopologyEntry entry,
                                                            std::shared_ptr<ChildLink> link) {
  Changes changes;
  std::shared_ptr<ChildLink> old;
  {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(CheckPlace(entry));
    if (IsOlderProcess(entry)) return errors::DuplicateProcess(entry.name);
    const std::string name = entry.name;
    Direct& direct = direct_[name];
    old = std::exchange(direct.link, std::move(link));
    direct.listing = ++listings_;
    direct.complete = !entry.is_relay;
    Entry& known = entries_[name];
    entry.duplicate_agent_at = known.is.duplicate_agent_at;
    KeepRoute(known, name);
    // The stream is new, even if the child was attached before.
    known.via.clear();
    MarkAttached(known, std::move(entry), name, changes);
  }
  Notify(changes);
  return old;
}

void Topology::Refresh(const std::string& name, const ChildLink* link,
                       std::shared_ptr<const v1::AttachStatement> statement) {
  MutexLock lock(mutex_);
  Entry* const entry = FindDirect(name, link);
  if (entry == nullptr) return;
  entry->is.statement = std::move(statement);
  NoteChanged(entry->is);
}

void Topology::SetInfo(const std::string& name, const ChildLink* link,
                       std::shared_ptr<const v1::NodeInfo> info) {
  MutexLock lock(mutex_);
  Entry* const entry = FindDirect(name, link);
  if (entry == nullptr) return;
  entry->is.info = std::move(info);
  NoteChanged(entry->is);
}

// Returns null if another stream has taken over.
Topology::Entry* Topology::FindDirect(const std::string& name, const ChildLink* link) {
  const auto direct = direct_.find(name);
  if (direct == direct_.end() || direct->second.link.get() != link) return nullptr;
  return &entries_[name];
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
    Entry& entry = entries_[name];
    if (entry.is.is_relay) DetachBranch(name, changes);
    EndRoute(entry, changes);
  }
  Notify(changes);
}

// Ends the routes through a child, except its own.
void Topology::DetachBranch(const std::string& child, Changes& changes) {
  other_routes_.RemoveChild(child);
  for (auto& [name, entry] : entries_) {
    if (entry.via == child && name != child) EndRoute(entry, changes);
  }
}

absl::Status Topology::ApplyUpdate(const std::string& child, std::vector<TopologyEntry> entries,
                                   const std::vector<std::string>& forgotten_uris, bool complete) {
  Changes changes;
  absl::Status refused;
  {
    MutexLock lock(mutex_);
    if (!direct_.contains(child)) return absl::OkStatus();
    for (TopologyEntry& entry : entries) {
      refused.Update(ApplyEntry(child, std::move(entry), changes));
    }
    if (complete) CompleteList(child, changes);
  }
  Notify(changes);
  for (const std::string& uri : forgotten_uris) ForgetDescendant(child, uri);
  return refused;
}

absl::Status Topology::ApplyEntry(const std::string& child, TopologyEntry reported,
                                  Changes& changes) {
  // This finds loops among descendants, too: no ancestor is a descendant of a relay.
  RETURN_IF_ERROR(CheckPlace(reported));
  const std::string name = reported.name;
  if (name == child) return errors::RelayLoop(name, child);
  const Direct& via = direct_.at(child);
  const auto found = entries_.find(name);
  KnownSubject known;
  if (found != entries_.end()) {
    known = {&found->second.is, found->second.via, direct_.contains(name)};
  }
  reported.since = Plausible(reported.since, clock_.Now());
  reported.duplicate_agent_at = Plausible(reported.duplicate_agent_at, clock_.Now());
  const UpdateEffect effect = JudgeUpdate(reported, known, child, !via.complete);
  if (!reported.attached) other_routes_.Remove(name, child);
  if (effect == UpdateEffect::kNone) {
    // The present route may be the older one, and end.
    if (reported.attached) other_routes_.Add({child, via.listing, std::move(reported)});
    return absl::OkStatus();
  }
  Entry& entry = entries_[name];
  if (effect == UpdateEffect::kAttach) KeepRoute(entry, child);
  // A new parent, or one that was restarted, does not know the earlier refusals.
  reported.duplicate_agent_at = std::max(reported.duplicate_agent_at, entry.is.duplicate_agent_at);
  entry.listing = via.listing;
  if (effect == UpdateEffect::kTakeOver) {
    changes.ends.emplace_back(std::move(direct_.at(name).link), errors::ChildTakenOver(name));
    direct_.erase(name);
    DetachBranch(name, changes);
  }
  if (effect == UpdateEffect::kDetach) {
    // A detached entry has no statement that proves who its parent was.
    if (entry.last_via == child) entry.is.duplicate_agent_at = reported.duplicate_agent_at;
    EndRoute(entry, changes);
  } else if (effect == UpdateEffect::kAdd) {
    entry.is = std::move(reported);
    entry.last_via = child;
  } else {
    MarkAttached(entry, std::move(reported), child, changes);
  }
  return absl::OkStatus();
}

// The child has sent all of its descendants since its stream began: the others have left.
void Topology::CompleteList(const std::string& child, Changes& changes) {
  Direct& direct = direct_.at(child);
  if (std::exchange(direct.complete, true)) return;
  other_routes_.RemoveUnlisted(child, direct.listing);
  for (auto& [name, entry] : entries_) {
    if (entry.via == child && name != child && entry.listing != direct.listing) {
      EndRoute(entry, changes);
    }
  }
}

// A relay forgets its own descendants only, and not those that have moved away from it.
void Topology::ForgetDescendant(const std::string& child, const std::string& uri) {
  Changes changes;
  {
    MutexLock lock(mutex_);
    const auto it = FindUri(uri);
    if (it == entries_.end()) return;
    other_routes_.Remove(it->first, child);
    if (direct_.contains(it->first)) return;
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
  is.known_since = same_route ? entry.is.known_since : clock_.Now();
  if (is.info == nullptr) is.info = entry.is.info;  // its new parent does not have it yet
  if (!entry.is.attached) ++attached_;
  const bool relay_attached = is.is_relay && !entry.is.attached;
  entry.is = std::move(is);
  entry.via = entry.last_via = via;
  entry.is.attached = true;
  other_routes_.Remove(entry.is.name, via);
  if (!same_route) changes.reachable.push_back(entry.is.name);
  if (relay_attached) changes.relays.emplace_back(entry.is.name, true);
  NoteChanged(entry.is);
}

// Keeps the route through a child relay before one through `next` replaces it.
void Topology::KeepRoute(const Entry& entry, std::string_view next) {
  const bool reported = entry.is.attached && entry.via != entry.is.name;
  if (reported && entry.via != next) other_routes_.Add({entry.via, entry.listing, entry.is});
}

// The entry is detached unless another child relay has it.
void Topology::EndRoute(Entry& entry, Changes& changes) {
  if (!entry.is.attached) return MarkDetached(entry, changes);
  auto other = other_routes_.DequeueLatest(entry.is.name, clock_.Now());
  if (!other) return MarkDetached(entry, changes);
  other->is.duplicate_agent_at =
      std::max(other->is.duplicate_agent_at, entry.is.duplicate_agent_at);
  entry.listing = other->listing;
  MarkAttached(entry, std::move(other->is), other->child, changes);
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
  if (!is_root_) unsent_.Add(is);
}

void Topology::Notify(const Changes& changes) {
  for (const auto& [link, why] : changes.ends) link->End(why);
  if (!changes.reachable.empty() && on_reachable_) on_reachable_(changes.reachable);
  if (relay_changed_) {
    for (const auto& [relay, attached] : changes.relays) relay_changed_(relay, attached);
  }
}

v1::AttachRequest::TopologyUpdate Topology::DequeueChanges(size_t limit, bool all) {
  MutexLock lock(mutex_);
  if (all) {
    for (const auto& [name, entry] : entries_) unsent_.Add(entry.is);
  }
  const auto find = [this](const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto entry = entries_.find(name);
    return entry == entries_.end() ? nullptr : &entry->second.is;
  };
  return unsent_.Dequeue(limit, find);
}

bool Topology::HasChanges() const {
  MutexLock lock(mutex_);
  return !unsent_.empty();
}

// A URI ends with the name.
Topology::Entries::iterator Topology::FindUri(std::string_view uri) {
  const auto entry = entries_.find(uri.substr(uri.rfind('/') + 1));
  return entry != entries_.end() && entry->second.is.uri == uri ? entry : entries_.end();
}

// Compares a certificate with those of all entries.
Topology::Entries::iterator Topology::FindSubject(const std::string& subject) {
  if (absl::StrContains(subject, '/')) return FindUri(subject);
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const auto& entry) { return entry.second.is.certificate == subject; });
}

void Topology::Remove(Entries::iterator it, Changes& changes) {
  other_routes_.RemoveAll(it->first);
  MarkDetached(it->second, changes);
  if (!is_root_) unsent_.AddRemoved(it->second.is);
  entries_.erase(it);
}

void Topology::Forget(const std::string& subject) {
  Changes changes;
  {
    MutexLock lock(mutex_);
    const auto it = FindSubject(subject);
    if (it == entries_.end()) return;
    if (const auto direct = direct_.find(it->first); direct != direct_.end()) {
      changes.ends.emplace_back(std::move(direct->second.link),
                                errors::IdentityRevoked(it->second.is.uri));
      direct_.erase(direct);
      DetachBranch(it->first, changes);
    }
    Remove(it, changes);
  }
  Notify(changes);
}

void Topology::Tick() {
  const absl::Time now = clock_.Now();
  Changes changes;
  {
    MutexLock lock(mutex_);
    for (auto it = entries_.begin(); it != entries_.end();) {
      Entry& entry = it->second;
      const bool ends = entry.is.attached && entry.is.statement != nullptr &&
                        entry.is.statement->expire_time().seconds() < absl::ToUnixSeconds(now);
      if (ends) {
        const auto direct = direct_.find(it->first);
        if (direct == direct_.end()) {
          EndRoute(entry, changes);
        } else {
          changes.ends.emplace_back(direct->second.link, errors::StatementExpired());
        }
      }
      const bool old = !entry.is.attached && entry.is.since + kRemembered < now;
      it = old ? entries_.erase(it) : std::next(it);
    }
  }
  Notify(changes);
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

}  // namespace muster
