// The descendants of this relay, and the routes to them.
//
// A relay knows its children by their streams. It knows the descendants of a child relay by the
// topology updates of that child, with the statement that each descendant signed for its own
// parent.
#ifndef MUSTER_SERVICES_RELAY_TOPOLOGY_TOPOLOGY_H_
#define MUSTER_SERVICES_RELAY_TOPOLOGY_TOPOLOGY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/relay/topology/other_routes.h"
#include "services/relay/topology/topology_changes.h"
#include "services/relay/topology/topology_entry.h"
#include "services/relay/topology/topology_view.h"

namespace muster {

// Thread-safe. Listeners run on the thread that made the change, with no lock held.
class Topology : public TopologyView {
 public:
  struct Options {
    std::string name;  // of this relay
    // The root relay has no parent that asks for changes.
    bool is_root = true;
    size_t max_entries = 200'000;
  };
  // Nodes and relays that became reachable, or are now routed through another child or stream.
  using OnReachable = std::function<void(const std::vector<std::string>& names)>;
  // A descendant relay that was attached or detached.
  using RelayChanged = std::function<void(const std::string& relay, bool attached)>;

  Topology(const Options& options, const Clock& clock)
      : TopologyView(options.name),
        is_root_(options.is_root),
        max_entries_(options.max_entries),
        clock_(clock) {}

  // Sets the listeners. Called once, before any other method.
  void Listen(OnReachable reachable, RelayChanged relay_changed);

  // Sets the relays from the root relay to this one.
  void SetPath(std::vector<std::string> path);

  // Returns the error of Attach for this entry, without attaching it. Remembers DUPLICATE_AGENT.
  absl::Status MayAttach(const TopologyEntry& entry);

  // Attaches a child to this relay by its stream. Returns its previous stream, which the caller has
  // to end. FAILED_PRECONDITION (RELAY_LOOP, RELAY_TOO_DEEP), RESOURCE_EXHAUSTED
  // (TOO_MANY_CHILDREN), ABORTED (DUPLICATE_AGENT: a process that began later is attached).
  absl::StatusOr<std::shared_ptr<ChildLink>> Attach(TopologyEntry entry,
                                                    std::shared_ptr<ChildLink> link);

  // Replaces the statement of the child with this stream.
  void Refresh(const std::string& name, const ChildLink* link,
               std::shared_ptr<const v1::AttachStatement> statement);

  // Replaces the information of the child with this stream.
  void SetInfo(const std::string& name, const ChildLink* link,
               std::shared_ptr<const v1::NodeInfo> info);

  // Ends the routes of the child with this stream, and of all descendants that are routed through
  // it. They are detached unless a child relay has them. Has no effect if another stream has taken
  // over.
  void Detach(const std::string& name, const ChildLink* link);

  // Applies a topology update of a child relay, whose statements the caller has verified, by the
  // rules of JudgeUpdate. Entries that this relay cannot accept are skipped; returns the error of
  // one of them (RELAY_LOOP, RELAY_TOO_DEEP, TOO_MANY_CHILDREN). Only descendants of the child are
  // forgotten, and only by their URIs: a search by certificate reads all entries.
  absl::Status ApplyUpdate(const std::string& child, std::vector<TopologyEntry> entries,
                           const std::vector<std::string>& forgotten_uris, bool complete);

  // Returns at most `limit` changes since the previous call, for the parent (topology_changes.h).
  // With `all`, every entry counts as changed.
  v1::AttachRequest::TopologyUpdate DequeueChanges(size_t limit, bool all);
  bool HasChanges() const;

  // Removes the entry with this URI or certificate, which was revoked, and ends its stream.
  void Forget(const std::string& subject);

  // Detaches entries whose statement has expired, and removes those that were detached for longer
  // than kRemembered. To be called every few seconds.
  void Tick();

  // Adds the entries of a snapshot as detached.
  void Restore(const std::vector<TopologyEntry>& entries);

 private:
  // Calls that are made after the mutex is released.
  struct Changes {
    std::vector<std::string> reachable;                // of the listeners, as the next
    std::vector<std::pair<std::string, bool>> relays;  // attached or detached
    std::vector<std::pair<std::shared_ptr<ChildLink>, absl::Status>> ends;  // of streams
  };

  absl::Status ApplyEntry(const std::string& child, TopologyEntry reported, Changes& changes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CompleteList(const std::string& child, Changes& changes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DetachBranch(const std::string& child, Changes& changes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetDescendant(const std::string& child, const std::string& uri)
      ABSL_LOCKS_EXCLUDED(mutex_);
  Entries::iterator FindUri(std::string_view uri) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entries::iterator FindSubject(const std::string& subject) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(Entries::iterator it, Changes& changes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepRoute(const Entry& entry, std::string_view next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndRoute(Entry& entry, Changes& changes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkDetached(Entry& entry, Changes& changes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkAttached(Entry& entry, TopologyEntry is, const std::string& via, Changes& changes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entry* FindDirect(const std::string& name, const ChildLink* link)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteChanged(const TopologyEntry& is) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Notify(const Changes& changes) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckPlace(const TopologyEntry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsOlderProcess(const TopologyEntry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const bool is_root_;
  const size_t max_entries_;
  const Clock& clock_;
  OnReachable on_reachable_;
  RelayChanged relay_changed_;
  TopologyChanges unsent_ ABSL_GUARDED_BY(mutex_);    // for the parent; empty at the root relay
  OtherRoutes other_routes_ ABSL_GUARDED_BY(mutex_);  // of attached entries
  uint64_t listings_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TOPOLOGY_TOPOLOGY_H_
