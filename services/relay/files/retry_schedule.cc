#include "services/relay/files/retry_schedule.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "services/common/base/error.h"
#include "services/relay/files/share_errors.h"

namespace muster {
namespace {

constexpr int kMostDoublings = 10;
// The bytes may be damaged at their sender, or in the part that was stored here before.
constexpr int kMostMismatches = 3;

}  // namespace

bool RetrySchedule::Start(const std::string& task, const PostTask& post,
                          absl::AnyInvocable<void()> work) {
  {
    MutexLock lock(mutex_);
    Task& state = tasks_[task];
    if (state.in_progress || state.next > clock_.MonotonicNow()) return false;
    state.in_progress = true;
  }
  // Without the lock: an executor of a test runs the work here.
  if (post(std::move(work))) return true;
  MutexLock lock(mutex_);
  tasks_[task].in_progress = false;
  return false;
}

void RetrySchedule::Finish(const std::string& task, const absl::Status& status,
                           absl::Duration least) {
  MutexLock lock(mutex_);
  Task& state = tasks_[task];
  const int64_t factor = int64_t{1} << std::min(state.tries, kMostDoublings);
  const absl::Duration ceiling = std::max(std::min(times_.longest, times_.first * factor), least);
  const absl::Duration wait = absl::Uniform(random_, 0.5, 1.0) * ceiling;
  ++state.tries;
  state.next = clock_.MonotonicNow() + std::max(wait, RetryAfterOf(status).value_or(wait));
  state.in_progress = false;
}

void RetrySchedule::Forget(const std::string& task) {
  MutexLock lock(mutex_);
  tasks_.erase(task);
}

bool RetrySchedule::CannotSucceed(const std::string& task, const absl::Status& status) {
  if (IsRefusal(status)) return true;
  const std::string reason = ReasonOf(status);
  if (reason != "DIGEST_MISMATCH" && reason != "SIZE_MISMATCH") return false;
  MutexLock lock(mutex_);
  return ++tasks_[task].mismatches >= kMostMismatches;
}

void RetrySchedule::ResetBackoff() {
  MutexLock lock(mutex_);
  for (auto& [name, task] : tasks_) {
    task.next = absl::ZeroDuration();
    task.tries = 0;
  }
}

void RetrySchedule::Retain(absl::FunctionRef<bool(const std::string& task)> wanted) {
  MutexLock lock(mutex_);
  std::erase_if(tasks_, [&](const auto& t) { return !t.second.in_progress && !wanted(t.first); });
}

size_t RetrySchedule::in_progress() const {
  MutexLock lock(mutex_);
  return static_cast<size_t>(
      std::ranges::count_if(tasks_, [](const auto& t) { return t.second.in_progress; }));
}

}  // namespace muster
