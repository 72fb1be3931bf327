// The senders of heartbeats: their streams, their presence, and what missing heartbeats mean.
//
// A heartbeat takes the lock of its shard for some stores. It moves nothing in the timing wheel of
// the shard: when a sender is due, the check finds the newer heartbeat and defers the sender.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
#include "services/status/heartbeats/registry_metrics.h"
#include "services/status/heartbeats/relay_table.h"
#include "services/status/heartbeats/sender.h"
#include "services/status/heartbeats/sender_streams.h"
#include "services/status/heartbeats/sender_table.h"
#include "services/status/heartbeats/silence_judge.h"

namespace muster {

struct RegistryOptions {
  absl::Duration tick = absl::Seconds(1);       // the resolution of silence
  absl::Duration interval = absl::Seconds(10);  // between two heartbeats, at least
  int64_t target_rate = 5000;                   // heartbeats a second of all, at most
  absl::Duration lost_after = absl::Minutes(3);
  // For this long after a start, and after a hold-up of this service, no silent sender is judged;
  // at least two intervals.
  absl::Duration grace = absl::Seconds(90);
  absl::Duration doubt_limit = absl::Minutes(10);  // the silence of many is believed after this
  absl::Duration forget_after = absl::Hours(24);   // of senders that are lost or offline
  int64_t max_senders = 500'000;
};

// For this long after a start or a hold-up, senders have time to send a heartbeat.
inline absl::Duration GraceOf(const RegistryOptions& options) {
  return std::max(options.grace, options.interval * 2);
}

// The first message of a stream, about its sender.
struct SenderHello {
  std::string uri;
  std::string node;
  std::string instance;   // of the process
  std::string boot;       // of the machine; may be empty
  absl::Duration uptime;  // of the process; zero: not known
  std::string pair;       // the first one that the stream names; may be empty
};

// The state of a sender that survives a restart of this service.
struct SenderRecord {
  std::string uri;
  std::string node;
  v1::Presence presence = v1::PRESENCE_UNSPECIFIED;
  absl::Time presence_since;
  absl::Time last_seen;
  uint64_t instance = 0;  // a hash
  uint64_t boot = 0;      // a hash
  Evidence evidence = Evidence::kNone;
};

// The history of nodes, and the state of senders that cannot be obtained again after a crash of
// this service: evidence, the start of heartbeats and the goodbye. Thread-safe; does not block.
class NodeJournal {
 public:
  virtual ~NodeJournal() = default;
  virtual void AddEvent(const std::string& node, v1::NodeEvent event) = 0;
  // Takes the first of these records. Returns how many: fewer than all if too many wait already.
  virtual size_t PutSenders(std::vector<SenderRecord> senders) = 0;
};

// Thread-safe. Calls the listener, the journal and the links with no lock held. The shards of
// SenderTable guard the senders; RelayTable and SilenceJudge have separate locks, which are
// acquired last.
class Registry {
 public:
  // A stream of a sender.
  class StreamRef {
   public:
    StreamRef() = default;
    std::shared_ptr<const Sender> sender() const;

   private:
    friend class Registry;
    StreamRef(std::shared_ptr<SenderEntry> entry, uint32_t number)
        : entry_(std::move(entry)), number_(number) {}
    std::shared_ptr<SenderEntry> entry_;
    uint32_t number_ = 0;  // among the sender's streams
  };

  struct Answer {
    int64_t sequence = 0;  // the newest that was accepted
    absl::Duration interval;
  };

  using Query = SilenceJudge::Query;

  Registry(const RegistryOptions& options, const Clock& clock, HeartbeatListener& listener,
           NodeJournal& journal, Query query, Metrics& metrics);

  // Restores the senders from before a restart, before the first heartbeat. The presence of those
  // that were neither lost nor offline is UNKNOWN. Their evidence stays until a heartbeat.
  void Restore(const std::vector<SenderRecord>& records);

  // Registers a stream, which replaces the one of its process for the same pair, and all streams of
  // another process. If another process is online, the sender is marked as a duplicate agent, and
  // the streams of the process that has run longer are ended with DUPLICATE_AGENT. The listener
  // learns of the sender with its first heartbeat. TOO_MANY_SENDERS, TOO_MANY_STREAMS_OF_CALLER.
  absl::StatusOr<StreamRef> Open(const SenderHello& hello, SenderConnection connection);

  // Returns whether a heartbeat with this number is newer than all before of its stream, which is
  // open. Counts it if not.
  bool IsNews(const StreamRef& stream, int64_t sequence, Answer* answer);

  // Accepts a heartbeat that IsNews admitted. Ignores it if the stream was replaced or closed.
  Answer HandleHeartbeat(const StreamRef& stream, int64_t sequence, absl::Duration clock_skew);

  // The stream ends on purpose: without another one the sender is offline. If another process has
  // the same identity, that one continues: the sender is lost if no heartbeat follows.
  void Goodbye(const StreamRef& stream);

  // The stream has ended. `by_peer`: without a goodbye, and not because this service ended it.
  void Closed(const StreamRef& stream, bool by_peer);

  // This service ended the stream because the certificate of its sender was revoked.
  void Revoked(const StreamRef& stream);

  // A heartbeat without a stream: Visit, then SendHeartbeat, or Leave if its pair was rejected.
  // TOO_MANY_SENDERS.
  absl::StatusOr<StreamRef> Visit(const std::string& uri, const std::string& node);
  Answer SendHeartbeat(const StreamRef& stream);
  void Leave(const StreamRef& stream);

  // Returns a relay, which need not be connected. TOO_MANY_SENDERS.
  absl::StatusOr<RelayState*> FindRelay(const std::string& name) {
    return relays_.Find(name, clock_.MonotonicNow());
  }
  // A relay has opened a stream that forwards heartbeats; see RelayTable::Open. TOO_MANY_SENDERS.
  absl::StatusOr<RelayState*> OpenRelay(const std::string& name, const std::string& certificate) {
    auto relay = relays_.Open(name, clock_.MonotonicNow());
    if (relay.ok()) relays_.SetCertificate(**relay, certificate);
    return relay;
  }
  std::string CertificateOf(const RelayState& relay) const { return relays_.CertificateOf(relay); }
  // The relay has sent a message. One that is connected but sends none is doubted.
  void HandleRelayMessage(RelayState* relay) {
    relays_.HandleMessage(relay, clock_.MonotonicNow(), Interval());
  }
  // A stream of the relay has ended. After the last one its senders are doubted for a while.
  void CloseRelay(RelayState* relay) { relays_.Close(relay, clock_.MonotonicNow()); }

  // Returns null for an unknown sender.
  std::shared_ptr<const Sender> Find(const std::string& uri, const std::string& node) const;

  // The sender has delivered all its results: unless it is connected or lost, it is offline.
  void SetFinished(const std::shared_ptr<const Sender>& sender);

  // Ends every stream, because this service stops. Nothing ticks afterwards, so the ends are not
  // taken for silence.
  void EndAll(const absl::Status& why);

  // Judges the senders that are due. Calls must not overlap.
  void Tick();

  // Puts the senders that changed since they were stored last into the journal. Returns false if
  // it does not take all of them now.
  bool StoreChanged();

  absl::Duration Interval() const { return senders_.Interval(); }
  // Returns why this service doubts its network or machine; empty if it does not.
  std::string doubt() const { return judge_.Doubt(); }
  // Returns the disconnected and silent relays: nothing is known of the senders whose heartbeats
  // they forward.
  std::vector<const RelayState*> lost_relays() const { return relays_.Lost(clock_.MonotonicNow()); }

 private:
  // Handles a heartbeat if `prepare(shard, entry, &sequence)` returns true, which is called with
  // the lock of the shard held and sets the sequence of the answer.
  template <typename Prepare>
  Answer Handle(const StreamRef& stream, Prepare prepare);
  void Accept(SenderTable::Shard& shard, SenderEntry& entry, absl::Duration now,
              SenderEffects* effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  bool ReplaceProcess(SenderTable::Shard& shard, SenderEntry& entry, const SenderHello& hello,
                      absl::Duration now, SenderEffects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  absl::StatusOr<uint32_t> OpenStream(SenderTable::Shard& shard, SenderEntry& entry,
                                      const SenderHello& hello, SenderConnection connection,
                                      SenderEffects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  // Returns false if the stream was replaced or closed before.
  bool CloseStream(SenderTable::Shard& shard, SenderEntry& entry, uint32_t number)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  // The sender ended on purpose.
  void SetOffline(SenderTable::Shard& shard, SenderEntry& entry, std::string detail,
                  SenderEffects* effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  bool PutRecords(const std::vector<std::shared_ptr<SenderEntry>>& entries);
  SenderRecord RecordOf(SenderTable::Shard& shard, SenderEntry& entry) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  void Deliver(SenderEffects effects);

  const RegistryOptions options_;
  const Clock& clock_;
  HeartbeatListener& listener_;
  NodeJournal& journal_;
  RegistryMetrics metrics_;
  SenderTable senders_;
  RelayTable relays_;
  SilenceJudge judge_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_H_
