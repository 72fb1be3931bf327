#include "services/common/rpc/caller_quota.h"

namespace muster {

CallerQuota::Ticket& CallerQuota::Ticket::operator=(Ticket&& other) noexcept {
  if (this == &other) return *this;
  Release();
  quota_ = std::exchange(other.quota_, nullptr);
  caller_ = std::move(other.caller_);
  amount_ = other.amount_;
  return *this;
}

void CallerQuota::Ticket::Release() {
  if (quota_ != nullptr) std::exchange(quota_, nullptr)->Release(caller_, amount_);
}

CallerQuota::Verdict CallerQuota::Reserve(std::string_view caller, int64_t amount,
                                          const Limits& limits, Ticket* ticket) {
  Ticket reserved;
  reserved.caller_ = std::string(caller);
  reserved.amount_ = amount;
  {
    MutexLock lock(mutex_);
    if (limits.in_all > 0 && amount > limits.in_all - reserved_) return Verdict::kFull;
    const auto own = of_caller_.find(reserved.caller_);
    if (limits.of_caller > 0 && own != of_caller_.end() &&
        amount > limits.of_caller - own->second) {
      return Verdict::kCallerAtLimit;
    }
    of_caller_[reserved.caller_] += amount;
    reserved_ += amount;
    reserved.quota_ = this;
  }
  if (gauge_) gauge_->Add(static_cast<double>(amount));
  *ticket = std::move(reserved);
  return Verdict::kReserved;
}

CallerQuota::Ticket CallerQuota::Charge(std::string_view caller, int64_t amount) {
  Ticket ticket;
  Reserve(caller, amount, {}, &ticket);
  return ticket;
}

void CallerQuota::Release(const std::string& caller, int64_t amount) {
  {
    MutexLock lock(mutex_);
    reserved_ -= amount;
    const auto own = of_caller_.find(caller);
    if ((own->second -= amount) == 0) of_caller_.erase(own);
  }
  if (gauge_) gauge_->Add(-static_cast<double>(amount));
}

int64_t CallerQuota::reserved() const {
  MutexLock lock(mutex_);
  return reserved_;
}

}  // namespace muster
