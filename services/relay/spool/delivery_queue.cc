#include "services/relay/spool/delivery_queue.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace muster {

void DeliveryQueue::Enqueue(const std::string& node, const std::string& id, absl::Time accepted) {
  MutexLock lock(mutex_);
  queues_[node].items.push_back({id, accepted});
}

std::optional<std::string> DeliveryQueue::Dequeue() {
  MutexLock lock(mutex_);
  const absl::Duration now = clock_.MonotonicNow();
  auto it = queues_.upper_bound(last_node_);
  for (size_t i = 0; i < queues_.size(); ++i, ++it) {
    if (it == queues_.end()) it = queues_.begin();
    Queue& queue = it->second;
    if (queue.in_delivery || now < queue.not_before) continue;
    queue.in_delivery = true;
    last_node_ = it->first;
    return queue.items.front().id;
  }
  return std::nullopt;
}

void DeliveryQueue::Finish(const std::string& node) {
  MutexLock lock(mutex_);
  const auto it = queues_.find(node);
  if (it == queues_.end() || !it->second.in_delivery) return;
  it->second.in_delivery = false;
  it->second.backoff.reset();
  it->second.items.pop_front();
  if (it->second.items.empty()) queues_.erase(it);
}

void DeliveryQueue::Requeue(const std::string& node, std::optional<absl::Duration> retry_after) {
  MutexLock lock(mutex_);
  const auto it = queues_.find(node);
  if (it == queues_.end()) return;
  Queue& queue = it->second;
  queue.in_delivery = false;
  queue.items.push_back(std::move(queue.items.front()));
  queue.items.pop_front();
  if (queue.backoff == nullptr) queue.backoff = std::make_unique<Backoff>(kDeliveryBackoff);
  queue.not_before = clock_.MonotonicNow() + queue.backoff->Next(retry_after);
}

void DeliveryQueue::ResetBackoff() {
  MutexLock lock(mutex_);
  for (auto& [node, queue] : queues_) {
    queue.not_before = absl::ZeroDuration();
    queue.backoff.reset();
  }
}

int64_t DeliveryQueue::size() const {
  MutexLock lock(mutex_);
  int64_t size = 0;
  for (const auto& [node, queue] : queues_) size += static_cast<int64_t>(queue.items.size());
  return size;
}

absl::Duration DeliveryQueue::OldestWait() const {
  MutexLock lock(mutex_);
  absl::Time oldest = absl::InfiniteFuture();
  for (const auto& [node, queue] : queues_) {
    for (const Item& item : queue.items) oldest = std::min(oldest, item.accepted);
  }
  return oldest == absl::InfiniteFuture() ? absl::ZeroDuration() : clock_.Now() - oldest;
}

}  // namespace muster
