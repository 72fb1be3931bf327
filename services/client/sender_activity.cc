#include "services/client/sender_activity.h"

#include <utility>

namespace muster::client {
namespace {

constexpr int64_t kMaxCount = 1'000'000'000'000;  // the limit of the status service

bool IsAppend(const Progress& progress) {
  return progress.append_totals || progress.append_completed != 0 ||
         !progress.append_failing.empty();
}

bool IsCount(int64_t value) { return value >= 0 && value <= kMaxCount; }

}  // namespace

void SenderActivity::SetPhase(Phase phase, std::string message) {
  Change([&](Activity& activity) {
    activity.phase = phase;
    activity.message = std::move(message);
  });
}

void SenderActivity::SetFault(std::optional<Fault> fault) {
  Change([&](Activity& activity) { activity.fault = std::move(fault); });
}

void SenderActivity::KeepProgress(const Progress& progress) {
  if (IsAppend(progress) || !IsCount(progress.total) || !IsCount(progress.completed)) return;
  Change([&](Activity& activity) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    activity.progress = progress;
    progress_version_ = activity.version;
  });
}

void SenderActivity::DropProgress() {
  MutexLock lock(mutex_);
  activity_.progress.reset();
}

Activity SenderActivity::Get() const {
  MutexLock lock(mutex_);
  return activity_;
}

void SenderActivity::HandleAck(uint64_t version) {
  MutexLock lock(mutex_);
  if (progress_version_ <= version) activity_.progress.reset();
}

void SenderActivity::Listen(std::function<void()> on_change) {
  MutexLock lock(listener_mutex_);
  listener_ = std::move(on_change);
}

void SenderActivity::Change(const std::function<void(Activity&)>& change) {
  {
    MutexLock lock(mutex_);
    ++activity_.version;
    change(activity_);
  }
  MutexLock lock(listener_mutex_);
  if (listener_) listener_();
}

}  // namespace muster::client
