#include "services/relay/proxy/admission.h"

#include <utility>

#include "services/common/errors/runs.h"

namespace muster {

struct Admission::Entry {
  Entry(Admission& owner, const std::string& uri, int64_t size)
      : admission(owner), caller(uri), bytes(size) {}
  ~Entry() { admission.Leave(*this); }

  Admission& admission;
  const std::string caller;
  const int64_t bytes;
  bool counted ABSL_GUARDED_BY(admission.mutex_) = true;
};

absl::StatusOr<Admission::Ticket> Admission::Enter(const std::string& caller, int64_t bytes,
                                                   bool is_relay) {
  const int64_t most_calls = is_relay ? limits_.calls / 2 : limits_.calls_of_one;
  const int64_t most_bytes = is_relay ? limits_.bytes / 2 : limits_.bytes_of_one;
  {
    MutexLock lock(mutex_);
    const auto it = of_one_.find(caller);
    const Use own = it == of_one_.end() ? Use() : it->second;
    if (calls_ >= limits_.calls || own.calls >= most_calls || bytes > limits_.bytes - bytes_ ||
        bytes > most_bytes - own.bytes) {
      ++refused_;
      return errors::Overloaded();
    }
    Use& use = of_one_[caller];
    ++use.calls;
    use.bytes += bytes;
    ++calls_;
    bytes_ += bytes;
    ++tickets_;
  }
  return std::make_shared<Entry>(*this, caller, bytes);
}

void Admission::UncountLocked(Entry& entry) {
  entry.admission.mutex_.AssertHeld();  // the same mutex
  if (!std::exchange(entry.counted, false)) return;
  const auto it = of_one_.find(entry.caller);
  it->second.bytes -= entry.bytes;
  if (--it->second.calls == 0) of_one_.erase(it);
  bytes_ -= entry.bytes;
  --calls_;
}

void Admission::Uncount(Entry& entry) {
  MutexLock lock(mutex_);
  UncountLocked(entry);
}

void Admission::Release(const Ticket& ticket) { ticket->admission.Uncount(*ticket); }

void Admission::Leave(Entry& entry) {
  MutexLock lock(mutex_);
  UncountLocked(entry);
  if (--tickets_ == 0) none_.NotifyAll();
}

void Admission::AwaitNone() {
  MutexLock lock(mutex_);
  while (tickets_ > 0) none_.Wait(mutex_);
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
