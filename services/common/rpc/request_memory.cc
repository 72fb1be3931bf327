#include "services/common/rpc/request_memory.h"

#include "services/common/errors/rpc.h"
#include "services/common/errors/runs.h"

namespace muster {

RequestMemory::Ticket& RequestMemory::Ticket::operator=(Ticket&& other) noexcept {
  if (this == &other) return *this;
  Release();
  memory_ = std::exchange(other.memory_, nullptr);
  caller_ = std::move(other.caller_);
  bytes_ = other.bytes_;
  return *this;
}

void RequestMemory::Ticket::Release() {
  if (memory_ != nullptr) std::exchange(memory_, nullptr)->Release(caller_, bytes_);
}

absl::StatusOr<RequestMemory::Ticket> RequestMemory::Reserve(std::string_view caller,
                                                             int64_t bytes) {
  Ticket ticket;
  ticket.caller_ = std::string(caller);
  ticket.bytes_ = bytes;
  MutexLock lock(mutex_);
  if (bytes > limits_.in_all - reserved_) return errors::Overloaded();
  const auto own = of_caller_.find(ticket.caller_);
  if (own != of_caller_.end() && bytes > limits_.of_caller - own->second) {
    return errors::TooManyRequestBytes(limits_.of_caller);
  }
  of_caller_[ticket.caller_] += bytes;
  reserved_ += bytes;
  ticket.memory_ = this;
  return ticket;
}

void RequestMemory::Release(const std::string& caller, int64_t bytes) {
  MutexLock lock(mutex_);
  reserved_ -= bytes;
  const auto own = of_caller_.find(caller);
  if ((own->second -= bytes) == 0) of_caller_.erase(own);
}

int64_t RequestMemory::reserved() const {
  MutexLock lock(mutex_);
  return reserved_;
}

}  // namespace muster
