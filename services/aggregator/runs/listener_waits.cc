#include "services/aggregator/runs/listener_waits.h"

#include <utility>

#include "services/common/errors/runs.h"

namespace muster {

namespace {

// Returns null if there is no listener to wait for.
const ListenerRecord* ListenerOf(const RunRecord& run, ListenerKind kind) {
  if (kind != ListenerKind::kStatus) return &run.listener;
  return run.status_listener ? &*run.status_listener : nullptr;
}

}  // namespace

void ListenerWaits::Wait(const std::string& run, ListenerKind kind, Done done) {
  const bool optional = kind == ListenerKind::kOptionalLegacy;
  const absl::Duration wait = optional ? kOptionalListenerWait : kListenerWait;
  Waiting waiting{run, kind, clock_.MonotonicNow() + wait, std::move(done)};
  if (TryFinish(waiting)) return;
  MutexLock lock(mutex_);
  waiting_.push_back(std::move(waiting));
}

void ListenerWaits::Check() {
  std::list<Waiting> looked_at;
  {
    MutexLock lock(mutex_);
    looked_at.swap(waiting_);
  }
  looked_at.remove_if([this](Waiting& waiting) { return TryFinish(waiting); });
  MutexLock lock(mutex_);
  waiting_.splice(waiting_.end(), looked_at);
}

bool ListenerWaits::TryFinish(Waiting& waiting) {
  auto view = store_.GetRun(waiting.run);
  if (!view.ok() || !*view) {
    waiting.done(view.ok() ? errors::RunNotFound(waiting.run) : view.status());
    return true;
  }
  RunRecord& run = (*view)->run;
  const ListenerRecord* const listener = ListenerOf(run, waiting.kind);
  const bool late = clock_.MonotonicNow() >= waiting.until;
  const bool optional = waiting.kind == ListenerKind::kOptionalLegacy;
  if (IsFinal(run.state)) {
    waiting.done(errors::RunEnded(waiting.run));
  } else if (listener == nullptr || listener->open ||
             (optional && (late || !listener->fault.empty()))) {
    waiting.done(std::move(run));
  } else if (late) {
    waiting.done(errors::ListenerNotReady(waiting.run, listener->fault));
  } else {
    return false;
  }
  return true;
}

}  // namespace muster
