// What hangs below this relay, and by which of its children each of it is reached.
//
// A relay knows its own children by their streams, and what hangs below a child relay by what that
// one says, each with the statement that the node itself signed for the relay it hangs below.
#ifndef MUSTER_SERVICES_RELAY_TOPOLOGY_TOPOLOGY_H_
#define MUSTER_SERVICES_RELAY_TOPOLOGY_TOPOLOGY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"

namespace muster {

// Relays in a row, the root included.
inline constexpr size_t kMaxDepth = 20;

// What was attached is remembered for so long after it went.
inline constexpr absl::Duration kRemembered = absl::Hours(24 * 7);

// The stream of a direct child. Thread-safe.
class ChildLink {
 public:
  virtual ~ChildLink() = default;
  // Queues a message and returns; a child that takes none loses its stream.
  virtual void Send(v1::AttachResponse message) = 0;
  virtual void End(const absl::Status& why) = 0;
  // Says something if nothing was said for an interval, and ends a stream on which nothing was
  // heard for three. Called every second or so.
  virtual void Tick() = 0;
};

// A node or relay below this one. A value.
struct TopologyEntry {
  std::string name;
  std::string uri;
  bool is_relay = false;
  std::string relay;  // the one it hangs, or hung, below
  bool attached = false;
  absl::Time since;  // when it came or went
  // Of the certificate that it showed last: "<issuer key id>:<serial>" (identity/revocation.h).
  std::string certificate;
  // What it signed for that relay; null when it is not attached.
  std::shared_ptr<const v1::AttachStatement> statement;
};

// Thread-safe. Hears of changes are called from whoever made them, without a lock held.
class Topology {
 public:
  struct Options {
    std::string name;  // of this relay
    // Whether this is the relay at the centre: nobody asks it for changes.
    bool is_root = true;
    size_t max_entries = 200'000;
  };
  // Names that can be reached now and could not before, or only by another way or another stream.
  using OnReachable = std::function<void(const std::vector<std::string>& names)>;
  // A relay below that came or went.
  using RelayChanged = std::function<void(const std::string& relay, bool attached)>;

  Topology(Options options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}

  // Once, before anything else; they outlive the tree's use.
  void Listen(OnReachable reachable, RelayChanged relay_changed);

  const std::string& name() const { return options_.name; }
  // The relays from the root to this one; only this one before it is known.
  std::vector<std::string> path() const;
  void SetPath(std::vector<std::string> path);

  // Whether there is a place for it: else what Attach would refuse it with.
  absl::Status MayAttach(const TopologyEntry& entry) const;

  // A child came by a stream of its own; `entry` is attached, to this relay. The stream that it had
  // before is returned, to be ended. FAILED_PRECONDITION (RELAY_LOOP, RELAY_TOO_DEEP),
  // RESOURCE_EXHAUSTED (TOO_MANY_CHILDREN).
  absl::StatusOr<std::shared_ptr<ChildLink>> Attach(TopologyEntry entry,
                                                    std::shared_ptr<ChildLink> link);

  // A fresh statement of a child whose stream this is.
  void Refresh(const std::string& name, const ChildLink* link,
               std::shared_ptr<const v1::AttachStatement> statement);

  // The stream ended: the child is gone, and what was reached by it. Nothing if another stream has
  // taken over.
  void Detach(const std::string& name, const ChildLink* link);

  // What a child relay says of what hangs below it, checked before. Entries that name this relay's
  // own children, or this relay, are refused: INVALID_ARGUMENT (INVALID_ATTACHMENT).
  absl::Status ApplyUpdate(const std::string& child, std::vector<TopologyEntry> entries,
                           const std::vector<std::string>& forgotten_uris, bool complete);

  // The stream by which `name` is reached now; null if it is not.
  std::shared_ptr<ChildLink> Route(std::string_view name) const;
  // The name of that direct child, or empty.
  std::string NextHop(std::string_view name) const;

  std::optional<TopologyEntry> Find(std::string_view name) const;
  // By name, from the first after `after`; of those below `relay` alone, if it is not empty.
  std::vector<TopologyEntry> List(const std::string& after, size_t limit, const std::string& relay,
                                  bool attached_only) const;
  // Every node that is attached, or was within kRemembered.
  std::vector<std::string> Nodes() const;
  // How many are attached at or below a relay.
  int64_t CountDescendants(const std::string& relay) const;

  // Direct children, for messages to all of them.
  std::vector<std::shared_ptr<ChildLink>> Children() const;
  std::vector<std::shared_ptr<ChildLink>> ChildRelays() const;

  // What changed since it was asked last, relays first, at most `limit`; for the parent. With `all`
  // everything counts as changed first.
  v1::AttachRequest::TopologyUpdate TakeChanges(size_t limit, bool all);
  bool HasChanges() const;

  // Forgets whom this names, a URI or a certificate, for good: it was revoked.
  void Forget(const std::string& subject);

  // Ends children whose statement has ended, and forgets what was away for long. To be called every
  // few seconds.
  void Tick();

  // Everything known, to be remembered over a restart; Restore takes it as not attached.
  std::vector<TopologyEntry> Snapshot() const;
  void Restore(const std::vector<TopologyEntry>& entries);

  size_t children() const;
  size_t attached() const;

 private:
  struct Entry {
    TopologyEntry is;
    std::string via;       // the direct child by which it is reached; empty when it is not
    uint64_t listing = 0;  // of the list in which its child named it last
  };
  struct Direct {
    std::shared_ptr<ChildLink> link;
    uint64_t listing = 0;   // rises with each stream
    bool complete = false;  // its list of what hangs below is
  };
  // What has to be told once the lock is free.
  struct News {
    std::vector<std::string> reachable;
    std::vector<std::pair<std::string, bool>> relays;
  };

  void MarkDetached(Entry& entry, News& news) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkAttached(Entry& entry, TopologyEntry is, const std::string& via, News& news)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Changed(const TopologyEntry& is) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Notify(const News& news);
  absl::Status CheckPlace(const TopologyEntry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const Clock& clock_;
  OnReachable on_reachable_;
  RelayChanged relay_changed_;
  mutable Mutex mutex_;
  std::vector<std::string> path_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Entry, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Direct> direct_ ABSL_GUARDED_BY(mutex_);
  // Names to tell the parent of; false: a relay.
  std::set<std::pair<bool, std::string>> changed_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> forgotten_ ABSL_GUARDED_BY(mutex_);  // URIs, likewise
  uint64_t listings_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t attached_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TOPOLOGY_TOPOLOGY_H_
