// Carries out what the status service concludes from silence: it judges, the aggregator acts.
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

// A verdict that no longer matters (a result came, the run has ended or is gone) changes nothing,
// so that one may be told any number of times. Thread-safe.
class Verdicts {
 public:
  // Runs on the store's thread once the verdict is carried out or found to be without effect; an
  // error if neither could be done.
  using Done = absl::AnyInvocable<void(const absl::Status&)>;

  // `actor`: the URI that the audit log names.
  Verdicts(StateStore& store, const Clock& clock, std::string actor)
      : store_(store), clock_(clock), actor_(std::move(actor)) {}

  // The pair's sender fell silent at `since` (InfinitePast: not known): the pair is timed out if it
  // is pending.
  void Lose(const ResultKey& key, std::string_view why, absl::Time since, Done done);

  // Nobody of the plan came within the run's start grace: the run has failed if it is still
  // planned.
  void StartGraceExpired(const std::string& run, std::string_view why, Done done);

  // How many pairs were timed out, and how many runs failed because nobody came.
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
