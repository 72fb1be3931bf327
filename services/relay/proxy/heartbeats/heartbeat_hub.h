// Combines the heartbeats of all children into the messages of one upstream stream.
//
// A heartbeat without activities becomes a number in a list, which is sent twice an interval. One
// with activities is merged into the unsent ones of its sender, so that a fast sender costs no more
// than a slow one.
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
  // Removes a sender whose stream has ended.
  void Remove(int32_t id);
  // The interval between the heartbeats of a sender.
  absl::Duration interval() const;

  // Upstream.

  // Begins a new stream, on which all senders are introduced again.
  void Restart();
  // Returns the next message; nothing if there is nothing to send. The list of heartbeats is sent
  // every half interval, also if it is empty.
  std::optional<v1::RelayHeartbeatsRequest> Next();
  void HandleResponse(const v1::RelayHeartbeatsResponse& response);

  size_t senders() const;

 private:
  struct Sender;

  void Enqueue(Sender& sender) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Fill(Sender& sender, v1::RelayHeartbeatsRequest::Sender* entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds the list of heartbeats if it is due. Returns whether it is.
  bool AddReceived(v1::RelayHeartbeatsRequest* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string relay_;
  const StatementOf statement_of_;
  const Clock& clock_;
  Counter received_;
  Counter sent_bytes_;

  mutable Mutex mutex_;
  std::map<int32_t, std::unique_ptr<Sender>> senders_ ABSL_GUARDED_BY(mutex_);
  std::deque<int32_t> unsent_ ABSL_GUARDED_BY(mutex_);  // senders with unsent activities
  // Introduced senders whose stream has ended.
  std::deque<int32_t> ended_ ABSL_GUARDED_BY(mutex_);
  int32_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool named_ ABSL_GUARDED_BY(mutex_) = false;  // the name was sent on this stream
  absl::Duration interval_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(10);
  // The last time at which the list of heartbeats was sent.
  absl::Duration list_sent_at_ ABSL_GUARDED_BY(mutex_);
  absl::Duration statements_at_ ABSL_GUARDED_BY(mutex_);  // when statements were last compared
};

// Merges `heartbeat` into an unsent one: the newest activity of each pair, but all progress of the
// append form, which the status service adds up.
void MergeHeartbeat(const v1::StreamHeartbeatsRequest& heartbeat,
                    v1::StreamHeartbeatsRequest* unsent);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_HEARTBEAT_HUB_H_
