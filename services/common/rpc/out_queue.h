// The messages of one stream that wait to be sent.
#ifndef MUSTER_SERVICES_COMMON_RPC_OUT_QUEUE_H_
#define MUSTER_SERVICES_COMMON_RPC_OUT_QUEUE_H_

#include <cstddef>
#include <memory>
#include <utility>

namespace muster {

// A message of any type; server_stream.h and client_stream.h derive one for each type.
struct OutMessage {
  virtual ~OutMessage() = default;
  size_t bytes = 0;
  std::unique_ptr<OutMessage> next;
};

// A queue with a limit on messages and on bytes. Small while empty: most streams are idle. Not
// thread-safe.
class OutQueue {
 public:
  OutQueue(size_t max_count, size_t max_bytes) : max_count_(max_count), max_bytes_(max_bytes) {}
  OutQueue(const OutQueue&) = delete;
  OutQueue& operator=(const OutQueue&) = delete;
  ~OutQueue() { Clear(); }

  bool empty() const { return count_ == 0; }
  size_t count() const { return count_; }
  size_t bytes() const { return bytes_; }
  OutMessage& front() { return *first_; }

  // Returns whether one more message fits. An empty queue takes a message of any size.
  bool Fits(size_t bytes) const {
    return count_ == 0 ||
           (count_ < max_count_ && bytes <= max_bytes_ && bytes_ <= max_bytes_ - bytes);
  }
  bool AtMostHalfFull() const { return count_ <= max_count_ / 2 && bytes_ <= max_bytes_ / 2; }

  void Push(std::unique_ptr<OutMessage> message) {
    ++count_;
    bytes_ += message->bytes;
    OutMessage* const added = message.get();
    (last_ == nullptr ? first_ : last_->next) = std::move(message);
    last_ = added;
  }

  std::unique_ptr<OutMessage> Pop() {
    std::unique_ptr<OutMessage> message = std::move(first_);
    first_ = std::move(message->next);
    if (first_ == nullptr) last_ = nullptr;
    --count_;
    bytes_ -= message->bytes;
    return message;
  }

  // Removes all messages, or all but the first; returns them.
  std::unique_ptr<OutMessage> TakeAll() { return TakeAfter(0, first_); }
  std::unique_ptr<OutMessage> TakeAllButFirst() { return TakeAfter(1, first_->next); }

  // Destroys a chain of messages without recursion.
  static void Destroy(std::unique_ptr<OutMessage> chain) {
    while (chain != nullptr) chain = std::move(chain->next);
  }

  void Clear() { Destroy(TakeAll()); }

 private:
  std::unique_ptr<OutMessage> TakeAfter(size_t keep, std::unique_ptr<OutMessage>& from) {
    std::unique_ptr<OutMessage> taken = std::move(from);
    count_ = keep;
    bytes_ = keep == 0 ? 0 : first_->bytes;
    last_ = keep == 0 ? nullptr : first_.get();
    return taken;
  }

  const size_t max_count_;
  const size_t max_bytes_;
  size_t count_ = 0;
  size_t bytes_ = 0;
  std::unique_ptr<OutMessage> first_;
  OutMessage* last_ = nullptr;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_OUT_QUEUE_H_
