// Combines the heartbeats of all children into the messages of one upstream stream.
//
// A heartbeat without activities becomes a number in a list, which is sent twice an interval. One
// with activities is merged into the unsent ones of its sender (heartbeat_merge.h), so that a fast
// sender costs no more than a slow one.
//
// A goodbye and appended progress are sent again on the next stream unless the status service has
// responded after them: a stream to an unreachable service takes messages, too. A goodbye is also
// sent again while the service is not ready. A response to an earlier message may confirm them, so
// that some can still be lost with a connection; and appended progress whose response is lost
// counts twice.
#ifndef MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_HEARTBEAT_HUB_H_
#define MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_HEARTBEAT_HUB_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/heartbeats.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/rpc_authorization.h"

namespace muster {

// The stream of one sender. Thread-safe; the methods do not block.
class HeartbeatSender {
 public:
  virtual ~HeartbeatSender() = default;
  virtual void Probe() = 0;
  virtual void End(const absl::Status& why) = 0;
};

// Thread-safe. Calls senders without its mutex.
class HeartbeatHub {
 public:
  // Returns the current attach statement of a sender.
  using StatementOf = std::function<absl::StatusOr<std::string>(const Caller&)>;

  // `relay`: the name of this relay.
  HeartbeatHub(std::string relay, StatementOf statement_of, const Clock& clock, Metrics& metrics);
  ~HeartbeatHub();

  // Downstream.

  // Adds a sender with its first message, which was validated; returns its number.
  // RESOURCE_EXHAUSTED (TOO_MANY_SENDERS).
  absl::StatusOr<int32_t> Add(std::shared_ptr<const Caller> caller,
                              const v1::StreamHeartbeatsRequest& first,
                              std::weak_ptr<HeartbeatSender> stream);
  void HandleHeartbeat(int32_t id, const v1::StreamHeartbeatsRequest& heartbeat);
  // Removes a sender whose stream has ended. One with a goodbye is kept until it is confirmed: at
  // most 64 of one identity, of which the oldest is dropped.
  void Remove(int32_t id);
  // The interval between the heartbeats of a sender.
  absl::Duration interval() const;

  // Upstream.

  // Begins a new stream, on which all senders are introduced again.
  void Restart();
  // Returns the next message; nothing if there is nothing to send. The list of heartbeats is sent
  // every half interval, also if it is empty. A message has less than kMaxSmallMessageBytes.
  std::optional<v1::RelayHeartbeatsRequest> Next();
  void HandleResponse(const v1::RelayHeartbeatsResponse& response);

  size_t senders() const;

 private:
  struct Sender;
  using Senders = std::map<int32_t, std::unique_ptr<Sender>>;
  using Entry = v1::RelayHeartbeatsRequest::Sender;

  void Enqueue(Sender& sender) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds the entries of ended and of queued senders to a message.
  void AddEnded(v1::RelayHeartbeatsRequest* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddQueued(v1::RelayHeartbeatsRequest* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns nothing if there is nothing to send, or no statement permits it.
  std::optional<Entry> MakeEntry(Sender& sender) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkSent(Sender& sender, bool has_beat) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The next entry of the sender introduces it, with what was not confirmed.
  void Reintroduce(Sender& sender) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The status service has responded: it receives the messages of this stream.
  void Confirm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepGoodbye(const Sender& sender) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase(Senders::iterator sender) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds the list of heartbeats if it is due. Returns whether it is.
  bool AddReceived(v1::RelayHeartbeatsRequest* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string relay_;
  const StatementOf statement_of_;
  const Clock& clock_;
  Counter received_;
  Counter sent_bytes_;

  mutable Mutex mutex_;
  Senders senders_ ABSL_GUARDED_BY(mutex_);
  std::deque<int32_t> unsent_ ABSL_GUARDED_BY(mutex_);  // senders with unsent activities
  // Senders whose goodbye or appended progress was sent on this stream.
  std::vector<int32_t> unconfirmed_ ABSL_GUARDED_BY(mutex_);
  // By URI: senders with a goodbye whose stream has ended, the oldest first.
  absl::flat_hash_map<std::string, std::deque<int32_t>> goodbyes_ ABSL_GUARDED_BY(mutex_);
  // Introduced senders whose stream has ended.
  std::deque<int32_t> ended_ ABSL_GUARDED_BY(mutex_);
  int32_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool named_ ABSL_GUARDED_BY(mutex_) = false;  // the name was sent on this stream
  absl::Duration interval_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(10);
  // The last time at which the list of heartbeats was sent.
  absl::Duration list_sent_at_ ABSL_GUARDED_BY(mutex_);
  absl::Duration statements_at_ ABSL_GUARDED_BY(mutex_);  // when statements were last compared
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_HEARTBEAT_HUB_H_
