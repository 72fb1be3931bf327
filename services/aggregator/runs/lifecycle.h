// What happens to a run by itself: its deadline, its grace, its archive, the end of its authority.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_LIFECYCLE_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_LIFECYCLE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/aggregator/runs/sealer.h"
#include "services/aggregator/uploads/uploads.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/timers.h"
#include "services/common/store/state_store.h"

namespace muster {

// How long a run's credentials and its listener stay after its end, so that late clients get their
// answer.
inline constexpr absl::Duration kAuthorityAfterEnd = absl::Hours(1);

// Reviews a run whenever it changed and whenever something of it falls due. What is due follows
// from the store alone, so a restart loses nothing. Thread-safe.
class Lifecycle : public std::enable_shared_from_this<Lifecycle> {
 public:
  // `actor`: the URI that the audit log names for what a run does by itself.
  Lifecycle(StateStore& store, Uploads& uploads, TimerService& timers, Executor& executor,
            const Clock& clock, std::string actor)
      : store_(store),
        uploads_(uploads),
        timers_(timers),
        executor_(executor),
        clock_(clock),
        actor_(std::move(actor)) {}

  // `seal` queues the building of an archive. Reviews every live run.
  absl::Status Start(std::function<void(const std::string& run)> seal);

  // Looks at a run on the executor soon.
  void ReviewSoon(const std::string& run) { ReviewAfter(run, absl::ZeroDuration()); }

  // Looks at it again after a while: something that was due could not be done.
  void ReviewAfter(const std::string& run, absl::Duration delay);

  // Reviews nothing more.
  void Stop();

 private:
  void Review(const std::string& run);
  absl::StatusOr<absl::Duration> DoWhatIsDue(const RunView& view, int64_t now);
  absl::StatusOr<absl::Duration> SealWhenSettled(const RunRecord& run, int64_t now);
  absl::StatusOr<absl::Duration> AfterTheEnd(const RunRecord& run, int64_t now);

  StateStore& store_;
  Uploads& uploads_;
  TimerService& timers_;
  Executor& executor_;
  const Clock& clock_;
  const std::string actor_;
  std::function<void(const std::string&)> seal_;
  Mutex mutex_;
  std::map<std::string, TimerId> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_LIFECYCLE_H_
