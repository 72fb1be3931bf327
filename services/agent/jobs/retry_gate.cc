#include "services/agent/jobs/retry_gate.h"

#include <optional>
#include <utility>

namespace muster {
namespace {

constexpr BackoffOptions kBackoff = {absl::Seconds(1), absl::Seconds(30)};

}  // namespace

RetryGate::RetryGate(TimerService& timers, Executor& executor, std::function<void()> on_open)
    : on_open_(std::move(on_open)),
      backoff_(kBackoff),
      open_(timers, executor, [this] { Open(); }) {}

bool RetryGate::is_open() const {
  MutexLock lock(mutex_);
  return is_open_;
}

void RetryGate::Close() {
  MutexLock lock(mutex_);
  is_open_ = false;
  open_.RunAfter(backoff_.Next(std::nullopt));
}

void RetryGate::Reset() {
  MutexLock lock(mutex_);
  is_open_ = true;
  backoff_.Reset();
}

void RetryGate::Open() {
  {
    MutexLock lock(mutex_);
    is_open_ = true;
  }
  on_open_();
}

}  // namespace muster
