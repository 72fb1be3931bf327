// Everybody who sends heartbeats, and who has fallen silent.
//
// Memory, sharded by sender; one timing wheel a shard holds who is to be looked at next. A
// heartbeat takes its shard's lock for some stores; it moves nothing in the wheel: when a sender's
// moment comes, the wheel sees that it was heard meanwhile and lets it wait on.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"
#include "services/status/heartbeats/observer.h"
#include "services/status/heartbeats/sender.h"
#include "services/status/heartbeats/tcp_view.h"

namespace muster {

struct RegistryOptions {
  absl::Duration tick = absl::Seconds(1);       // how exact silence is measured
  absl::Duration interval = absl::Seconds(10);  // between two heartbeats, at least
  int64_t target_rate = 5000;                   // heartbeats a second of all, at most
  absl::Duration lost_after = absl::Minutes(3);
  // For this long after a start, and after a hold-up of this service, nobody who is not heard is
  // judged; at least two intervals.
  absl::Duration grace = absl::Seconds(90);
  absl::Duration doubt_limit = absl::Minutes(10);  // silence of many is believed then
  absl::Duration forget_after = absl::Hours(24);   // senders that are lost or said goodbye
  int64_t max_senders = 500'000;
};

// How the registry reaches whoever beats on a stream. Thread-safe.
class SenderLink {
 public:
  virtual ~SenderLink() = default;
  // Asks for a heartbeat now.
  virtual void Probe() = 0;
  virtual void End(const absl::Status& why) = 0;
};

// Where what happens to nodes is written down. Thread-safe; does not wait.
class NodeJournal {
 public:
  virtual ~NodeJournal() = default;
  virtual void Happened(const std::string& node, v1::NodeEvent event) = 0;
};

// What a stream says of its sender when it begins.
struct SenderHello {
  std::string uri;
  std::string node;
  std::string instance;               // of the process
  std::string boot;                   // of the machine; may be empty
  absl::Duration uptime;              // of the process; zero: not said
  const RelayState* relay = nullptr;  // by which it comes; null: it is connected here
};

// What outlives this process of a sender.
struct SenderRecord {
  std::string uri;
  std::string node;
  v1::Presence presence = v1::PRESENCE_UNSPECIFIED;
  absl::Time presence_since;
  absl::Time last_seen;
  uint64_t instance = 0;  // a hash
  uint64_t boot = 0;      // a hash
};

// Thread-safe. Calls the listener, the journal and the lines without its locks.
class Registry {
 public:
  class Entry;

  // One stream's place at its sender.
  class Seat {
   public:
    Seat() = default;
    std::shared_ptr<const Sender> sender() const;

   private:
    friend class Registry;
    Seat(std::shared_ptr<Entry> entry, uint32_t number)
        : entry_(std::move(entry)), number_(number) {}
    std::shared_ptr<Entry> entry_;
    uint32_t number_ = 0;  // which of the sender's streams; the newest counts
  };

  struct Answer {
    int64_t sequence = 0;  // the newest that was taken
    absl::Duration interval;
  };

  // How the kernel sees these connections; empty if it cannot be asked.
  using Look = std::function<std::vector<TcpState>(const std::vector<TcpPeer>&)>;

  Registry(const RegistryOptions& options, const Clock& clock, HeartbeatListener& listener,
           NodeJournal& journal, Look look, Metrics& metrics);
  ~Registry();

  // Takes over what an earlier life knew, before anybody beats: whoever was there is UNKNOWN.
  void Restore(const std::vector<SenderRecord>& records);

  // A stream begins. It takes the place of an older one of its sender; if that is of another
  // process which is still heard, both are marked, and the one that runs for longer is ended with
  // DUPLICATE_AGENT. TOO_MANY_SENDERS. The sender is there for others from its first Beat on.
  absl::StatusOr<Seat> Open(const SenderHello& hello, std::weak_ptr<SenderLink> line,
                            const TcpPeer& peer);

  // Whether a heartbeat of this number is newer than all before; counted if not.
  bool IsNews(const Seat& seat, int64_t sequence, Answer* answer);

  // A heartbeat that is news was dealt with. Nothing happens if another stream took the place.
  Answer Beat(const Seat& seat, int64_t sequence, absl::Duration clock_skew);

  // The sender ends on purpose.
  void Goodbye(const Seat& seat);

  // The stream is gone. `by_peer`: without a word, and not because this service ended it.
  void Closed(const Seat& seat, bool by_peer);

  // The stream is gone: this service ended it, as its sender is not to be trusted any more.
  void Revoked(const Seat& seat);

  // A heartbeat without a stream: Visit, then SendHeartbeat, or Leave if its pair was refused.
  // TOO_MANY_SENDERS.
  absl::StatusOr<Seat> Visit(const std::string& uri, const std::string& node);
  Answer SendHeartbeat(const Seat& seat);
  void Leave(const Seat& seat);

  // A relay brings the heartbeats of others from now on, by one more stream. TOO_MANY_SENDERS.
  absl::StatusOr<RelayState*> OpenRelay(const std::string& name);
  // A stream of it is gone. If it was the last one nobody below it is judged for a while.
  void CloseRelay(RelayState* relay);

  // Null for one that is not known.
  std::shared_ptr<const Sender> Find(const std::string& uri, const std::string& node) const;

  // All that `sender` did is done: if it is not connected it counts as gone on purpose.
  void Excuse(const std::shared_ptr<const Sender>& sender);

  // Ends every stream: this service stops. What Closed says of them afterwards is nobody's silence
  // as long as nothing ticks.
  void EndAll(const absl::Status& why);

  // Goes on to now: who has fallen silent, who is to be probed. One thread.
  void Tick();

  // The records of who changed since the last call, at most `max`.
  std::vector<SenderRecord> TakeChanged(size_t max);

  absl::Duration Interval() const;
  // Why this service doubts its own sight; empty when it does not.
  std::string doubt() const;

 private:
  struct Shard;
  struct Effects;
  struct Figures;

  Shard& ShardOf(std::string_view uri, std::string_view node) const;
  absl::StatusOr<std::shared_ptr<Entry>> FindOrAdd(Shard& shard, const std::string& uri,
                                                   const std::string& node);
  // A heartbeat under its shard's lock, if `prepare(entry)` lets it count.
  template <typename Prepare>
  Answer Take(const Seat& seat, Prepare prepare);
  Answer Heard(Shard& shard, Entry& entry, absl::Duration now, Effects* effects);
  bool TakePlace(Entry& entry, const SenderHello& hello, absl::Duration now, Effects* effects);
  void Turn(Entry& entry, v1::Presence to, absl::Duration now, std::string detail,
            Effects* effects);
  void Note(const Entry& entry, std::string detail, Effects* effects) const;
  void CarryOut(Effects effects);
  void Forget(Shard& shard, Entry& entry);

  // registry_tick.cc
  std::vector<std::shared_ptr<Entry>> FallDue(absl::Duration now, Effects* effects)
      ABSL_LOCKS_EXCLUDED(observer_mutex_);
  bool Settle(Shard& shard, Entry& entry, absl::Duration now, Effects* effects);
  void Judge(Entry& entry, absl::Duration now, Effects* effects);
  void JudgeSilent(Shard& shard, Entry& entry, absl::Duration now, Effects* effects);
  void Doubt(Entry& entry, absl::Duration now, std::string why, Effects* effects);
  bool BelowLostRelay(const Entry& entry, absl::Duration now) const;
  std::string DoubtOfRelays(absl::Duration now) const ABSL_LOCKS_EXCLUDED(relays_mutex_);
  void DoubtNewlyLate(absl::Duration now, Effects* effects);
  void LookAtConnections(absl::Duration now, Effects* effects) ABSL_LOCKS_EXCLUDED(closed_mutex_);
  void ApplySight(Entry& entry, const TcpState& sight, Effects* effects);
  void Measure(absl::Duration lag);
  int64_t TickBefore(absl::Duration at) const;
  int64_t TickAfter(absl::Duration at) const;

  const RegistryOptions options_;
  const Clock& clock_;
  HeartbeatListener& listener_;
  NodeJournal& journal_;
  const Look look_;
  const std::unique_ptr<Figures> figures_;
  const absl::Duration started_;
  const absl::Duration grace_end_;  // of this start
  const std::unique_ptr<Shard[]> shards_;

  std::array<std::atomic<int64_t>, v1::Presence_ARRAYSIZE> present_ = {};
  std::atomic<int64_t> senders_ = 0;
  std::atomic<int64_t> doubted_ = 0;

  // The ticking thread's own, but for observer_mutex_.
  absl::Duration last_tick_;
  mutable Mutex observer_mutex_;
  Observer observer_;  // changed by the ticking thread under observer_mutex_
  std::deque<std::pair<absl::Duration, std::weak_ptr<Entry>>> newly_late_;

  mutable Mutex relays_mutex_;
  // By name; never taken out, since senders point to them.
  std::map<std::string, std::unique_ptr<RelayState>> relays_ ABSL_GUARDED_BY(relays_mutex_);

  Mutex closed_mutex_;
  // Connections that ended, and when.
  std::vector<std::pair<absl::Duration, std::shared_ptr<Entry>>> closed_
      ABSL_GUARDED_BY(closed_mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_H_
