// Calls that wait until the gateway opens a run's listener.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_LISTENER_WAITS_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_LISTENER_WAITS_H_

#include <list>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"
#include "services/common/store/state_store.h"

namespace muster {

inline constexpr absl::Duration kListenerWait = absl::Seconds(30);
inline constexpr absl::Duration kOptionalListenerWait = absl::Seconds(10);

enum class ListenerKind {
  kLegacy,          // for legacy clients
  kOptionalLegacy,  // the same, for a caller that can do without it
  kStatus,          // the run's separate status listener; no wait if it uses the fleet's
};

// Thread-safe.
class ListenerWaits {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<RunRecord>)>;

  ListenerWaits(StateStore& store, const Clock& clock, Metrics& metrics);

  // Calls `done` with the run once its listener is open: immediately, or from Check. An optional
  // listener may have a fault or be late instead. Calls it with LISTENER_NOT_READY after
  // kListenerWait, or with RUN_ENDED if the run CA was deleted.
  void Wait(const std::string& run, ListenerKind kind, Done done);

  // Checks all waiting calls. Must be called after a change of a run and about once a second, on an
  // executor.
  void Check();

  // Answers all waiting calls with AGGREGATOR_STOPPING, and later ones that would wait. gRPC ends
  // only when all calls are answered.
  void Stop();

 private:
  struct Waiting {
    std::string run;
    ListenerKind kind;
    absl::Duration until;  // monotonic
    Done done;
  };

  bool TryFinish(Waiting& waiting);

  // Adds the calls to those that wait, or answers them if Stop was called.
  void Keep(std::list<Waiting> waiting);

  StateStore& store_;
  const Clock& clock_;
  const Gauge waits_;  // the calls in waiting_
  Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_LISTENER_WAITS_H_
