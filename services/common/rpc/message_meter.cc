#include "services/common/rpc/message_meter.h"

#include <algorithm>

namespace muster {

bool MessageMeter::Begin(uint32_t stream) {
  MutexLock lock(mutex_);
  if (streams_.size() >= kMaxStreams) return false;
  streams_.try_emplace(stream);
  return true;
}

bool MessageMeter::Read(uint32_t stream, std::string_view bytes) {
  MutexLock lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return true;
  Message& message = found->second;
  while (!bytes.empty()) {
    if (message.received < kPrefix) {
      const auto byte = static_cast<uint8_t>(bytes.front());
      if (message.received > 0) message.size = message.size << 8 | byte;
      ++message.received;
      ++unfinished_;
      bytes.remove_prefix(1);
      if (message.received == kPrefix) {
        if (message.size > max_bytes_) {
          too_large_.push_back({stream, message.size});
          unfinished_ -= message.received;
          streams_.erase(found);
          return true;
        }
        message.size += kPrefix;
      }
    } else {
      const auto read =
          static_cast<size_t>(std::min<uint64_t>(bytes.size(), message.size - message.received));
      message.received += read;
      unfinished_ += read;
      bytes.remove_prefix(read);
    }
    if (message.received >= kPrefix && message.received == message.size) {
      unfinished_ -= message.received;
      message = {};
    }
  }
  return message.received <= kMaxUnfinishedBytes;
}

void MessageMeter::End(uint32_t stream) {
  MutexLock lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  unfinished_ -= found->second.received;
  streams_.erase(found);
}

std::vector<MessageMeter::TooLarge> MessageMeter::TakeTooLarge() {
  MutexLock lock(mutex_);
  return std::exchange(too_large_, {});
}

size_t MessageMeter::unfinished() const {
  MutexLock lock(mutex_);
  return unfinished_;
}

}  // namespace muster
