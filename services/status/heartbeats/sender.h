// A sender of heartbeats, as the other parts see it.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_SENDER_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_SENDER_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/heartbeats.pb.h"
#include "muster/v1/status.pb.h"

namespace muster {

// The evidence about a sender beside its silence.
// The numbers are stored.
enum class Evidence : uint8_t {
  kNone = 0,
  kClosed = 1,         // it closed its connection without a goodbye
  kAcknowledging = 2,  // its machine acknowledges packets

  kUnacknowledged = 3,  // its machine does not acknowledge packets
  kRevoked = 5,         // its stream was ended because its certificate was revoked
};

// Returns whether a sender with this presence sends no heartbeats any more.
inline bool IsGone(v1::Presence presence) {
  return presence == v1::PRESENCE_OFFLINE || presence == v1::PRESENCE_LOST;
}

// A relay that forwards heartbeats. Thread-safe. Lives as long as the registry.
struct RelayState {
  explicit RelayState(std::string name) : name(std::move(name)) {}

  // Returns whether the relay is connected and has sent no message for longer than a relay that
  // works: it sends one every half interval, also without heartbeats. `now`: monotonic.
  bool IsSilent(absl::Duration now) const {
    const absl::Duration expected = absl::Nanoseconds(interval.load());
    if (!connected || expected == absl::ZeroDuration()) return false;
    // Three times the pace of a relay that works, which checks it every quarter of a second.
    const absl::Duration limit = expected + std::max(expected / 2, absl::Seconds(1));
    return now - absl::Nanoseconds(received_at.load()) >= limit;
  }

  const std::string name;
  std::atomic<bool> connected = false;
  // The last change of `connected`, or the end of its last silence: monotonic nanoseconds.
  std::atomic<int64_t> turned_at = 0;
  // The time of its absence up to that moment, less the time of its presence; at least 0, in
  // nanoseconds.
  std::atomic<int64_t> away = 0;
  std::atomic<int64_t> received_at = 0;  // its newest message: monotonic nanoseconds
  std::atomic<int64_t> interval = 0;     // in the answer to it, in nanoseconds; 0: no message yet
  std::atomic<int> streams = 0;          // open ones; two while one takes over
};

// A process that sends heartbeats: (identity, node). Thread-safe. Each value is read separately, so
// two reads may see two moments. Only the registry changes values.
class Sender {
 public:
  Sender(std::string uri, std::string node) : uri_(std::move(uri)), node_(std::move(node)) {}
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // The URI of its certificate.
  const std::string& uri() const { return uri_; }
  // "global" for a plugin that runs once.
  const std::string& node() const { return node_; }

  // PRESENCE_UNKNOWN after a start of this service until the first heartbeat, and while the sender
  // is silent and the service doubts its network or machine.
  v1::Presence presence() const { return static_cast<v1::Presence>(presence_.load()); }
  // Monotonic time; may be negative for events from before a restart.
  absl::Duration presence_since() const { return absl::Nanoseconds(presence_since_.load()); }
  absl::Duration last_seen() const { return absl::Nanoseconds(last_seen_.load()); }
  Evidence evidence() const { return evidence_; }
  // How often a new process has replaced one that said no goodbye, since this service started.
  uint32_t restarts() const { return restarts_; }
  // Its wall clock minus ours at its last heartbeat: shown, never used.
  absl::Duration clock_skew() const { return absl::Microseconds(clock_skew_.load()); }
  // Two processes alternate as this sender.
  bool duplicate_agent() const { return duplicate_agent_; }
  // The interval in the last answer to it.
  absl::Duration interval() const { return absl::Milliseconds(interval_.load()); }
  // It is silent, and so are many others: the fault is likely in the network, or here.
  bool doubted() const { return doubted_; }
  // The relay that forwards its heartbeats; null: a direct connection, which the kernel knows.
  const RelayState* relay() const { return relay_; }

  void set_presence(v1::Presence presence, absl::Duration since) {
    presence_since_ = absl::ToInt64Nanoseconds(since);
    presence_ = static_cast<uint8_t>(presence);
  }
  void set_last_seen(absl::Duration at) { last_seen_ = absl::ToInt64Nanoseconds(at); }
  void set_evidence(Evidence evidence) { evidence_ = evidence; }
  void AddRestart() { ++restarts_; }
  void set_clock_skew(absl::Duration skew) { clock_skew_ = absl::ToInt64Microseconds(skew); }
  void set_duplicate_agent(bool duplicate_agent) { duplicate_agent_ = duplicate_agent; }
  void set_interval(absl::Duration interval) { interval_ = absl::ToInt64Milliseconds(interval); }
  void set_doubted(bool doubted) { doubted_ = doubted; }
  void set_relay(const RelayState* relay) { relay_ = relay; }

 private:
  const std::string uri_;
  const std::string node_;
  std::atomic<int64_t> last_seen_ = 0;       // monotonic nanoseconds
  std::atomic<int64_t> presence_since_ = 0;  // monotonic nanoseconds
  std::atomic<int64_t> clock_skew_ = 0;      // microseconds
  std::atomic<int64_t> interval_ = 0;        // milliseconds
  std::atomic<uint8_t> presence_ = 0;
  std::atomic<Evidence> evidence_ = Evidence::kNone;
  std::atomic<uint32_t> restarts_ = 0;
  std::atomic<bool> duplicate_agent_ = false;
  std::atomic<bool> doubted_ = false;
  std::atomic<const RelayState*> relay_ = nullptr;
};

// Receives the activities and changes of senders. Thread-safe. Called with no lock held, also on
// gRPC's threads: it may wait only for a short lock.
class HeartbeatListener {
 public:
  virtual ~HeartbeatListener() = default;

  // Handles the activity of `sender` for a pair: the whole activity when its stream starts, then
  // changes. The texts in `activity` are printable UTF-8 within their limits; its key is `key`.
  // RUN_NOT_FOUND, PAIR_NOT_PLANNED, INVALID_PROGRESS, STATUS_NOT_READY.
  virtual absl::Status HandleActivity(const v1::ResultKey& key,
                                      const std::shared_ptr<const Sender>& sender,
                                      const v1::Activity& activity) = 0;

  // Presence, evidence, doubt or the duplicate mark has changed, or the sender is new.
  virtual void PresenceChanged(const std::shared_ptr<const Sender>& sender) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_SENDER_H_
