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

ListenerWaits::ListenerWaits(StateStore& store, const Clock& clock, Metrics& metrics)
    : store_(store),
      clock_(clock),
      waits_(metrics.AddGauge("muster_listener_waits",
                              "Calls that wait for the gateway to open a listener.")) {}

void ListenerWaits::Wait(const std::string& run, ListenerKind kind, Done done) {
  const bool optional = kind == ListenerKind::kOptionalLegacy;
  const absl::Duration wait = optional ? kOptionalListenerWait : kListenerWait;
  std::list<Waiting> waiting;
  waiting.push_back({run, kind, clock_.MonotonicNow() + wait, std::move(done)});
  if (!TryFinish(waiting.front())) Keep(std::move(waiting));
}

void ListenerWaits::Check() {
  std::list<Waiting> looked_at;
  {
    MutexLock lock(mutex_);
    looked_at.swap(waiting_);
  }
  looked_at.remove_if([this](Waiting& waiting) { return TryFinish(waiting); });
  Keep(std::move(looked_at));
}

void ListenerWaits::Stop() {
  std::list<Waiting> waiting;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    waiting.swap(waiting_);
  }
  Keep(std::move(waiting));
}

void ListenerWaits::Keep(std::list<Waiting> waiting) {
  {
    MutexLock lock(mutex_);
    if (!stopped_) waiting_.splice(waiting_.end(), waiting);
    waits_.Set(static_cast<double>(waiting_.size()));
  }
  for (Waiting& unanswered : waiting) unanswered.done(errors::AggregatorStopping());
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
