// The order in which complete results leave the spool.
#ifndef MUSTER_SERVICES_RELAY_SPOOL_DELIVERY_QUEUE_H_
#define MUSTER_SERVICES_RELAY_SPOOL_DELIVERY_QUEUE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"

namespace muster {

// The waits after failed deliveries.
inline constexpr BackoffOptions kDeliveryBackoff = {
    .first = absl::Seconds(1), .most = absl::Seconds(30), .least = absl::Milliseconds(200)};

// A queue for each node. The results of a node leave in the order of their completion, one at a
// time; one whose delivery failed goes behind the others, so a result that is refused for a while
// (its run is full, a later attempt is being delivered) does not delay them. Nodes take turns, so a
// node with many results does not delay others. Thread-safe; nothing waits.
class DeliveryQueue {
 public:
  explicit DeliveryQueue(const Clock& clock) : clock_(clock) {}

  // Adds a result that was accepted at `accepted`.
  void Enqueue(const std::string& node, const std::string& id, absl::Time accepted);

  // Returns the next result, of a node without a result in delivery. End the delivery with Finish
  // or Requeue.
  std::optional<std::string> Dequeue();

  // Removes the result of `node` that is in delivery.
  void Finish(const std::string& node);

  // Puts it behind the others of its node, which waits for a back-off not shorter than
  // `retry_after`.
  void Requeue(const std::string& node, std::optional<absl::Duration> retry_after);

  // Ends the back-off of all nodes.
  void ResetBackoff();

  // Results that are waiting or in delivery.
  int64_t size() const;

  // Returns the time since the oldest result was accepted; zero if there is none.
  absl::Duration OldestWait() const;

 private:
  struct Item {
    std::string id;
    absl::Time accepted;
  };
  struct Queue {
    std::deque<Item> items;
    bool in_delivery = false;          // the first item
    absl::Duration not_before;         // monotonic
    std::unique_ptr<Backoff> backoff;  // null unless the last delivery failed
  };

  const Clock& clock_;
  mutable Mutex mutex_;
  // By node; a queue with no items is removed.
  std::map<std::string, Queue> queues_ ABSL_GUARDED_BY(mutex_);
  std::string last_node_ ABSL_GUARDED_BY(mutex_);  // of the last Dequeue
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_SPOOL_DELIVERY_QUEUE_H_
