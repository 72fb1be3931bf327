#include "services/relay/files/retry_schedule.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "services/common/base/error.h"
#include "services/relay/files/share_errors.h"

namespace muster {
namespace {

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
  if (state.backoff == nullptr) state.backoff = std::make_unique<Backoff>(times_);
  std::optional<absl::Duration> asked = RetryAfterOf(status);
  if (least > absl::ZeroDuration()) asked = std::max(asked.value_or(least), least);
  state.next = clock_.MonotonicNow() + state.backoff->Next(asked);
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
    task.backoff.reset();
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
