// Executes the verdicts of the status service: it concludes, the aggregator acts.
#ifndef MUSTER_SERVICES_AGGREGATOR_VERDICTS_VERDICTS_H_
#define MUSTER_SERVICES_AGGREGATOR_VERDICTS_VERDICTS_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/store/state_store.h"

namespace muster {

// A verdict that no longer applies (a result arrived, the run has ended or was removed) changes
// nothing, so a verdict may be repeated. Thread-safe.
class Verdicts {
 public:
  // Runs on the store's thread once the verdict is executed or found to have no effect; with an
  // error if neither was possible.
  using Done = absl::AnyInvocable<void(const absl::Status&)>;

  // `actor`: the URI that the audit log names.
  Verdicts(StateStore& store, const Clock& clock, std::string actor)
      : store_(store), clock_(clock), actor_(std::move(actor)) {}

  // Times the pair out if it is pending. Its sender is silent since `since` (InfinitePast: not
  // known).
  void Lose(const ResultKey& key, std::string_view why, absl::Time since, Done done);

  // Fails the run if it is still planned, because no agent reported within its start grace.
  void StartGraceExpired(const std::string& run, std::string_view why, Done done);

  // The numbers of pairs that were timed out, and of runs without an agent that failed.
  int64_t lost() const { return lost_; }
  int64_t start_grace_expired() const { return start_grace_expired_; }

 private:
  StateStore& store_;
  const Clock& clock_;
  const std::string actor_;
  std::atomic<int64_t> lost_ = 0;
  std::atomic<int64_t> start_grace_expired_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_VERDICTS_VERDICTS_H_
