// All senders of heartbeats: in shards, counted by presence, each with the time of its next check.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_SENDER_TABLE_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_SENDER_TABLE_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/status/heartbeats/registry_metrics.h"
#include "services/status/heartbeats/sender.h"
#include "services/status/heartbeats/sender_streams.h"
#include "services/status/heartbeats/timing_wheel.h"

namespace muster {

class SenderEntry;

// A part of the senders, with their lock. Only SenderTable uses the other members.
class SenderShard {
 public:
  Mutex mutex;

 private:
  friend class SenderTable;
  struct Key {
    std::string_view uri;
    std::string_view node;
  };
  static Key KeyOf(const std::shared_ptr<SenderEntry>& entry);
  static Key KeyOf(const Key& key) { return key; }
  struct Hash {
    using is_transparent = void;
    size_t operator()(const auto& key) const {
      const Key k = KeyOf(key);
      return std::hash<std::string_view>()(k.uri) * 31 + std::hash<std::string_view>()(k.node);
    }
  };
  struct Same {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const {
      const Key x = KeyOf(a);
      const Key y = KeyOf(b);
      return x.uri == y.uri && x.node == y.node;
    }
  };

  std::unordered_set<std::shared_ptr<SenderEntry>, Hash, Same> entries ABSL_GUARDED_BY(mutex);
  TimingWheel wheel ABSL_GUARDED_BY(mutex);
};

// The state of a sender that only the registry uses.
struct SenderState {
  // A process that was rejected or replaced tries again within this time if it lives: twice the
  // longest back-off of an agent.
  static constexpr absl::Duration kLongestRetry = absl::Seconds(90);
  // Returns whether such a process may still try again.
  bool AwaitsOther(absl::Duration now) const { return now - duplicate_since <= kLongestRetry; }

  uint64_t instance = 0;           // a hash; 0: not sent
  uint64_t boot = 0;               // a hash; 0: not sent
  absl::Duration began;            // the start of its process, in our monotonic time
  SenderStreams streams;           // of this instance
  absl::Duration duplicate_since;  // when another process was rejected or replaced last

  bool listed = false;   // in its shard
  bool changed = false;  // since it was last recorded
  bool checked = false;  // at its connection, since its last heartbeat

  bool unanswered = false;  // that look saw nothing acknowledged
  bool asked = false;       // the kernel answered when its connection was last looked at
  bool took_over = false;   // from a process without a goodbye, and without a heartbeat since

  // One of two processes said goodbye, and the other one has sent no heartbeat since.
  bool goodbye = false;
};

// A sender with the state that its shard guards, in contrast to that of Sender.
class SenderEntry : public Sender,
                    public WheelNode,
                    public std::enable_shared_from_this<SenderEntry> {
 public:
  using Sender::Sender;

  // `shard` is that of the sender (SenderTable::ShardOf).
  SenderState& state(SenderShard& shard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex) {
    return state_;
  }

  // When a look at its connection is first useful: the next heartbeat is overdue, and the kernel,
  // which drops a dead connection after 15 s (rpc/server.cc), still has it.
  absl::Duration CheckAfter() const { return std::min(interval() * 1.3, absl::Seconds(13)); }

  // Returns whether the kernel saw the other side close the connection. Then there is a route to
  // the sender, and its silence is no reason for doubt, however many senders are silent.
  bool ClosedByPeer(SenderShard& shard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex) {
    return state(shard).asked && evidence() == Evidence::kClosed;
  }

 private:
  SenderState state_;
};

inline SenderShard::Key SenderShard::KeyOf(const std::shared_ptr<SenderEntry>& entry) {
  return {entry->uri(), entry->node()};
}

// The consequences of changes, to be carried out when no lock is held.
struct SenderEffects {
  std::vector<std::shared_ptr<const Sender>> changed;
  std::vector<std::pair<std::string, v1::NodeEvent>> events;  // by node
  std::vector<std::shared_ptr<SenderLink>> probes;
  std::vector<std::pair<std::shared_ptr<SenderLink>, absl::Status>> ends;
  std::vector<std::shared_ptr<SenderEntry>> checks;
  std::vector<std::shared_ptr<SenderEntry>> to_store;  // without delay
};

// Invariants: count(p) is the number of listed senders with presence p, and doubted() the number of
// doubted ones. A sender that is not listed waits in no wheel. Functions with a Shard need its
// mutex. Times are monotonic. Thread-safe.
class SenderTable {
 public:
  struct Options {
    absl::Duration tick;      // the resolution of the wheels
    absl::Duration interval;  // the least interval between two heartbeats
    int64_t target_rate = 0;  // heartbeats a second of all senders, at most
    int64_t max_senders = 0;
  };

  using Shard = SenderShard;

  SenderTable(const Options& options, const Clock& clock, RegistryMetrics& metrics);
  ~SenderTable();

  // When this table was made.
  absl::Duration started() const { return started_; }

  // How often a sender has to send, so that all together keep to the target rate.
  absl::Duration Interval() const;

  Shard& ShardOf(std::string_view uri, std::string_view node) const;
  Shard& ShardOf(const Sender& sender) const { return ShardOf(sender.uri(), sender.node()); }

  // TOO_MANY_SENDERS.
  absl::StatusOr<std::shared_ptr<SenderEntry>> FindOrAdd(Shard& shard, const std::string& uri,
                                                         const std::string& node)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  // Returns null if the sender is not listed.
  std::shared_ptr<SenderEntry> Find(Shard& shard, const std::string& uri,
                                    const std::string& node) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);

  // Lists a forgotten sender that has sent a heartbeat again, unless another one has its place.
  void List(Shard& shard, SenderEntry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  void Forget(Shard& shard, SenderEntry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);

  // Sets the presence, with its count, and adds an event with `detail`. Removes the doubt unless
  // the presence is unknown. OFFLINE is stored without delay.
  void SetPresence(Shard& shard, SenderEntry& entry, v1::Presence presence, absl::Duration now,
                   std::string detail, SenderEffects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  // Sets the presence from before a restart, without an event.
  void RestorePresence(Shard& shard, SenderEntry& entry, v1::Presence presence,
                       absl::Duration since) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  // Marks the sender as doubted; its presence is unknown then.
  void SetDoubted(Shard& shard, SenderEntry& entry, absl::Duration now, std::string detail,
                  SenderEffects* effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  void AddEvent(const Sender& sender, std::string detail, SenderEffects* effects) const;

  // The sender falls due at the first tick that is not before `at`.
  void Schedule(Shard& shard, SenderEntry& entry, absl::Duration at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  // Calls `due` for each sender that has fallen due until `now`, with the lock of its shard held.
  void Advance(absl::Duration now,
               const std::function<void(Shard& shard, SenderEntry& entry)>& due);

  // Calls `visit` for each listed sender, with the lock of its shard held, until it returns false.
  void ForEach(
      const std::function<bool(Shard& shard, const std::shared_ptr<SenderEntry>& entry)>& visit);

  int64_t count(v1::Presence presence) const { return count_[static_cast<size_t>(presence)]; }
  int64_t doubted() const { return doubted_; }

 private:
  // Far more than threads that handle heartbeats at a time.
  static constexpr size_t kShards = 32;

  const Options options_;
  const Clock& clock_;
  RegistryMetrics& metrics_;
  const absl::Duration started_;
  const std::unique_ptr<Shard[]> shards_;
  std::array<std::atomic<int64_t>, v1::Presence_ARRAYSIZE> count_ = {};
  std::atomic<int64_t> senders_ = 0;
  std::atomic<int64_t> doubted_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_SENDER_TABLE_H_
