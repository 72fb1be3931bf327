#include "services/common/base/mutex.h"

#include <algorithm>

namespace muster {
namespace {

// The steady clock counts nanoseconds in 64 bits, which is 292 years.
constexpr absl::Duration kForever = absl::Hours(24 * 365 * 100);

}  // namespace

std::chrono::steady_clock::time_point SteadyDeadline(absl::Duration limit) {
  return std::chrono::steady_clock::now() +
         absl::ToChronoNanoseconds(std::clamp(limit, absl::ZeroDuration(), kForever));
}

void CondVar::Wait(Mutex& mutex) {
  std::unique_lock lock(mutex.mutex_, std::adopt_lock);
  condition_.wait(lock);
  lock.release();
}

bool CondVar::WaitFor(Mutex& mutex, absl::Duration limit) {
  return WaitUntil(mutex, SteadyDeadline(limit));
}

bool CondVar::WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex.mutex_, std::adopt_lock);
  const std::cv_status status = condition_.wait_until(lock, deadline);
  lock.release();
  return status == std::cv_status::no_timeout;
}

void StoppableCondVar::Wait(Mutex& mutex) {
  std::unique_lock lock(mutex.mutex_, std::adopt_lock);
  condition_.wait(lock);
  lock.release();
}

}  // namespace muster
