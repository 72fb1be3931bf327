// Advances runs in time: deadline, grace, archive, end of the run CA.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_LIFECYCLE_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_LIFECYCLE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/aggregator/runs/redelivery_wait.h"
#include "services/aggregator/runs/sealer.h"
#include "services/aggregator/uploads/uploads.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/timers.h"
#include "services/common/store/state_store.h"

namespace muster {

// The time for which a run's credentials and listener remain after its end, so that late clients
// get an answer.
inline constexpr absl::Duration kAuthorityAfterEnd = absl::Hours(1);

// Reviews a run after each change and whenever one of its timers expires. The due steps follow from
// the store alone, so a restart loses nothing. Thread-safe.
class Lifecycle : public std::enable_shared_from_this<Lifecycle> {
 public:
  // `actor`: the URI in the audit log for automatic changes. `redeliveries` may delay seals.
  Lifecycle(StateStore& store, Uploads& uploads, TimerService& timers, Executor& executor,
            const Clock& clock, RedeliveryWait& redeliveries, std::string actor)
      : store_(store),
        uploads_(uploads),
        timers_(timers),
        executor_(executor),
        clock_(clock),
        redeliveries_(redeliveries),
        actor_(std::move(actor)) {}

  // Reviews every live run. `seal`: as Sealer::Seal.
  absl::Status Start(std::function<absl::Duration(const std::string& run)> seal);

  // Reviews every live run soon.
  absl::Status ReviewAll();

  // Reviews a run on the executor soon.
  void ReviewSoon(const std::string& run) { ReviewAfter(run, absl::ZeroDuration()); }

  // Reviews it after a delay, because a due step failed. Does not postpone a review that is
  // scheduled for an earlier time.
  void ReviewAfter(const std::string& run, absl::Duration delay);

  // Ends all reviews.
  void Stop();

 private:
  struct Waiting {
    TimerId timer = 0;
    absl::Duration due;  // monotonic
  };

  void PostReview(const std::string& run, absl::Duration due);
  void Review(const std::string& run);
  absl::StatusOr<absl::Duration> DoWhatIsDue(const RunView& view, int64_t now);
  absl::StatusOr<absl::Duration> SealWhenSettled(const RunRecord& run, int64_t now);
  absl::StatusOr<absl::Duration> AfterTheEnd(const RunRecord& run, int64_t now);

  StateStore& store_;
  Uploads& uploads_;
  TimerService& timers_;
  Executor& executor_;
  const Clock& clock_;
  RedeliveryWait& redeliveries_;
  const std::string actor_;
  std::function<absl::Duration(const std::string&)> seal_;
  Mutex mutex_;
  std::map<std::string, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);  // by run
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_LIFECYCLE_H_
