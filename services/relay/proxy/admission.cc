#include "services/relay/proxy/admission.h"

#include "services/common/errors/runs.h"

namespace muster {

absl::StatusOr<Admission::Ticket> Admission::Enter(const std::string& caller, int64_t bytes) {
  {
    MutexLock lock(mutex_);
    const auto it = of_one_.find(caller);
    const int64_t own = it == of_one_.end() ? 0 : it->second;
    if (calls_ >= limits_.calls || own >= limits_.calls_of_one || bytes > limits_.bytes - bytes_) {
      ++refused_;
      return errors::Overloaded();
    }
    ++of_one_[caller];
    ++calls_;
    bytes_ += bytes;
  }
  return Ticket(nullptr, [this, caller, bytes](void*) { Leave(caller, bytes); });
}

void Admission::Leave(const std::string& caller, int64_t bytes) {
  MutexLock lock(mutex_);
  if (const auto it = of_one_.find(caller); --it->second == 0) of_one_.erase(it);
  bytes_ -= bytes;
  if (--calls_ == 0) none_.NotifyAll();
}

void Admission::AwaitNone() {
  MutexLock lock(mutex_);
  while (calls_ > 0) none_.Wait(mutex_);
}

int64_t Admission::calls() const {
  MutexLock lock(mutex_);
  return calls_;
}

int64_t Admission::refused() const {
  MutexLock lock(mutex_);
  return refused_;
}

}  // namespace muster
