#include "services/common/rpc/live_calls.h"

namespace muster {

LiveCalls::Handle LiveCalls::Add(const Caller& caller, grpc::CallbackServerContext* context) {
  std::lock_guard lock(mutex_);
  entries_.push_back({caller, context});
  const auto it = std::prev(entries_.end());
  return {nullptr, [this, it](void*) {
            std::lock_guard lock(mutex_);
            entries_.erase(it);
          }};
}

int LiveCalls::CancelIf(const std::function<bool(const Caller&)>& is_revoked) {
  int cancelled = 0;
  std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    if (!is_revoked(entry.caller)) continue;
    entry.context->TryCancel();
    ++cancelled;
  }
  return cancelled;
}

int LiveCalls::CancelAll() {
  return CancelIf([](const Caller&) { return true; });
}

}  // namespace muster
