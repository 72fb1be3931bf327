// The heartbeats of all who hang directly below this relay, on their way into one stream upward.
//
// A beat that says nothing new is a number in a list that goes up twice an interval; one with news
// is merged into what has not gone up yet, so that a fast sender costs no more than a slow one.
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
#include "services/common/identity/policy.h"

namespace muster {

// How the hub reaches a sender's own stream. Thread-safe; does not wait.
class HeartbeatSender {
 public:
  virtual ~HeartbeatSender() = default;
  virtual void Probe() = 0;
  virtual void End(const absl::Status& why) = 0;
};

// Thread-safe. Calls children without its lock.
class HeartbeatHub {
 public:
  // The word of a sender for this relay, as it is now: from the tree.
  using StatementOf = std::function<absl::StatusOr<std::string>(const Caller&)>;

  // `relay`: our name.
  HeartbeatHub(std::string relay, StatementOf statement_of, const Clock& clock, Metrics& metrics);
  ~HeartbeatHub();

  // Below.

  // A sender's stream begins with `first`, which was checked. RESOURCE_EXHAUSTED
  // (TOO_MANY_SENDERS).
  absl::StatusOr<int32_t> Add(std::shared_ptr<const Caller> caller,
                              const v1::StreamHeartbeatsRequest& first,
                              std::weak_ptr<HeartbeatSender> child);
  void HandleHeartbeat(int32_t id, const v1::StreamHeartbeatsRequest& beat);
  // The stream is over. Nothing for one that said goodbye.
  void Remove(int32_t id);
  // Ends every stream: this relay stops.
  void EndAll(const absl::Status& why);
  // What senders are told: how often to beat.
  absl::Duration interval() const;

  // Above.

  // A stream upward begins: everybody is to be introduced.
  void Restart();
  // What is to be said next; nothing if there is nothing now.
  std::optional<v1::RelayHeartbeatsRequest> Next();
  // What came down.
  void HandleResponse(const v1::RelayHeartbeatsResponse& response);

  size_t senders() const;

 private:
  struct Sender;

  void Queue(Sender& sender) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Fill(Sender& sender, v1::RelayHeartbeatsRequest::Sender* entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddHeard(v1::RelayHeartbeatsRequest* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string relay_;
  const StatementOf statement_of_;
  const Clock& clock_;
  Counter beats_;
  Counter sent_bytes_;

  mutable Mutex mutex_;
  std::map<int32_t, std::unique_ptr<Sender>> senders_ ABSL_GUARDED_BY(mutex_);
  std::deque<int32_t> news_ ABSL_GUARDED_BY(mutex_);  // who has something to say upward
  // Who was introduced, and is not there any more.
  std::deque<int32_t> gone_ ABSL_GUARDED_BY(mutex_);
  int32_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool named_ ABSL_GUARDED_BY(mutex_) = false;  // our name went up on this stream
  absl::Duration interval_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(10);
  // When the list of those who were heard went up last.
  absl::Duration heard_at_ ABSL_GUARDED_BY(mutex_);
  absl::Duration statements_at_ ABSL_GUARDED_BY(mutex_);  // when statements were compared last
};

// Adds what `news` says to what was said before and has not gone up: the newest for each pair, but
// progress of the append form, which adds up above.
void MergeHeartbeat(const v1::StreamHeartbeatsRequest& news, v1::StreamHeartbeatsRequest* before);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_HEARTBEAT_HUB_H_
