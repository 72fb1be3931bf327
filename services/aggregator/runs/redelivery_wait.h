// How long the seal of a run waits for damaged results that are requested from their nodes again.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_REDELIVERY_WAIT_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_REDELIVERY_WAIT_H_

#include <atomic>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/aggregator/verify/read_failures.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/blob/blob_store.h"
#include "services/common/store/state_store.h"

namespace muster {

// A run waits once in the life of a process, for its seal grace: a result that no node can deliver
// delays the seal no longer. Thread-safe; the calls wait for the disk.
class RedeliveryWait {
 public:
  // `actor`: in the audit log, for damage that a build found.
  RedeliveryWait(StateStore& store, BlobStore& blobs, const Clock& clock, Actor actor)
      : store_(store), blobs_(blobs), clock_(clock), actor_(std::move(actor)) {}

  // Returns the time that remains; zero if no result of the run is requested, or if it has waited.
  absl::StatusOr<absl::Duration> Remaining(const RunRecord& run) ABSL_LOCKS_EXCLUDED(mutex_);

  // Handles that the build of an archive found damage: verifies the results of the run, which
  // records it. `failures`: of the builds, so that the same unreadable results count as lost. A
  // result that its node declined is not requested again. Returns Remaining after that. CANCELLED
  // soon after `stop` was set.
  absl::StatusOr<absl::Duration> Verify(const RunRecord& run, ReadFailures& failures,
                                        const std::atomic<bool>& stop) ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets a run that has ended.
  void Forget(const std::string& run) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<absl::Duration> RemainingOfDamaged(const RunRecord& run);

  StateStore& store_;
  BlobStore& blobs_;
  const Clock& clock_;
  const Actor actor_;
  Mutex mutex_;
  // The monotonic times at which the waits end, by run.
  std::map<std::string, absl::Duration> ends_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_REDELIVERY_WAIT_H_
