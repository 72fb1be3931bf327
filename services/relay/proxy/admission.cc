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
  const int64_t most_of_one = is_relay ? limits_.calls / 2 : limits_.calls_of_one;
  {
    MutexLock lock(mutex_);
    const auto it = of_one_.find(caller);
    const int64_t own = it == of_one_.end() ? 0 : it->second;
    if (calls_ >= limits_.calls || own >= most_of_one || bytes > limits_.bytes - bytes_) {
      ++refused_;
      return errors::Overloaded();
    }
    ++of_one_[caller];
    ++calls_;
    bytes_ += bytes;
    ++tickets_;
  }
  return std::make_shared<Entry>(*this, caller, bytes);
}

void Admission::UncountLocked(Entry& entry) {
  entry.admission.mutex_.AssertHeld();  // the same mutex
  if (!std::exchange(entry.counted, false)) return;
  if (const auto it = of_one_.find(entry.caller); --it->second == 0) of_one_.erase(it);
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
