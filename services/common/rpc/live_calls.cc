#include "services/common/rpc/live_calls.h"

namespace muster {

LiveCalls::Handle LiveCalls::Add(std::shared_ptr<const Caller> caller,
                                 grpc::CallbackServerContext* context) {
  auto entry = std::make_unique<Entry>(std::move(caller), context);
  MutexLock lock(mutex_);
  entries_.push_back(entry.get());
  const auto it = std::prev(entries_.end());
  return {entry.release(), [this, it](Entry* gone) {
            {
              MutexLock guard(mutex_);
              entries_.erase(it);
              if (entries_.empty()) none_.NotifyAll();
            }
            delete gone;
          }};
}

void LiveCalls::ForgetContext(Entry& entry) {
  MutexLock lock(mutex_);
  entry.context_ = nullptr;
}

int LiveCalls::CancelWhere(const std::function<bool(const Entry&)>& condition) {
  int cancelled = 0;
  MutexLock lock(mutex_);
  for (const Entry* entry : entries_) {
    if (entry->context_ == nullptr || !condition(*entry)) continue;
    entry->context_->TryCancel();
    ++cancelled;
  }
  return cancelled;
}

int LiveCalls::CancelIf(const std::function<bool(const Caller&)>& is_revoked) {
  return CancelWhere([&](const Entry& entry) { return is_revoked(*entry.caller_); });
}

int LiveCalls::CancelStuck(absl::Duration now, absl::Duration limit) {
  return CancelWhere([&](const Entry& entry) {
    const int64_t since = entry.writing_since_;
    return since != 0 && now - absl::Nanoseconds(since) > limit;
  });
}

int LiveCalls::CancelAll() {
  return CancelWhere([](const Entry&) { return true; });
}

void LiveCalls::AwaitNone() {
  MutexLock lock(mutex_);
  while (!entries_.empty()) none_.Wait(mutex_);
}

}  // namespace muster
