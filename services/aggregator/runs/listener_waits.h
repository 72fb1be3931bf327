// Callers that wait for the gateway to open a run's listeners.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_LISTENER_WAITS_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_LISTENER_WAITS_H_

#include <list>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/store/state_store.h"

namespace muster {

inline constexpr absl::Duration kListenerWait = absl::Seconds(30);

enum class Door {
  kLegacy,  // for old clients
  kStatus,  // the run's own status listener; nothing to wait for if it shares the fleet's
};

// Thread-safe.
class ListenerWaits {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<RunRecord>)>;

  ListenerWaits(StateStore& store, const Clock& clock) : store_(store), clock_(clock) {}

  // Calls `done` with the run once its door is open: at once, or from Check; with
  // LISTENER_NOT_READY after kListenerWait, RUN_ENDED if its authority is gone.
  void Wait(const std::string& run, Door door, Done done);

  // Looks again at what is waited for. To be called when a run changed and every second or so; on
  // an executor.
  void Check();

 private:
  struct Waiting {
    std::string run;
    Door door;
    absl::Duration until;  // monotonic
    Done done;
  };

  bool TryFinish(Waiting& waiting);

  StateStore& store_;
  const Clock& clock_;
  Mutex mutex_;
  std::list<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_LISTENER_WAITS_H_
