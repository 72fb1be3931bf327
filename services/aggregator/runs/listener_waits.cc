#include "services/aggregator/runs/listener_waits.h"

#include <utility>

#include "services/common/errors.h"

namespace muster {

void ListenerWaits::Wait(const std::string& run, Done done) {
  Waiting waiting{run, clock_.MonotonicNow() + kListenerWait, std::move(done)};
  if (TryFinish(waiting)) return;
  std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(waiting));
}

void ListenerWaits::Check() {
  std::list<Waiting> looked_at;
  {
    std::lock_guard lock(mutex_);
    looked_at.swap(waiting_);
  }
  looked_at.remove_if([this](Waiting& waiting) { return TryFinish(waiting); });
  std::lock_guard lock(mutex_);
  waiting_.splice(waiting_.end(), looked_at);
}

bool ListenerWaits::TryFinish(Waiting& waiting) {
  auto view = store_.GetRun(waiting.run);
  if (!view.ok()) {
    waiting.done(view.status());
  } else if (!*view) {
    waiting.done(errors::RunNotFound(waiting.run));
  } else if (IsFinal((*view)->run.state)) {
    waiting.done(errors::RunEnded(waiting.run));
  } else if ((*view)->run.listener.open) {
    waiting.done(std::move((*view)->run));
  } else if (clock_.MonotonicNow() >= waiting.until) {
    waiting.done(errors::ListenerNotReady(waiting.run, (*view)->run.listener.fault));
  } else {
    return false;
  }
  return true;
}

}  // namespace muster
