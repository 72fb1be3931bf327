// The results on a node that are not delivered, and when they are removed.
#ifndef MUSTER_SERVICES_AGENT_COLLECTION_UNDELIVERED_RESULTS_H_
#define MUSTER_SERVICES_AGENT_COLLECTION_UNDELIVERED_RESULTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "services/agent/agent_state.h"
#include "services/common/base/clock.h"

namespace muster {

struct UndeliveredOptions {
  std::string state_dir;
  std::string node;
  size_t max_results = 0;
  int64_t max_bytes = 0;
  const Clock* clock = nullptr;  // outlives the user
};

// An index of the states in a folder. A result stays for an hour after the end of its run, because
// only a relay says that the run has ended: another offer continues the delivery. Without an end it
// stays for longer than any run lasts. Not thread-safe.
class UndeliveredResults {
 public:
  static constexpr absl::Duration kKeptAfterEnd = absl::Hours(1);
  static constexpr absl::Duration kKept = absl::Hours(24 * 40);

  // Returns whether a task uses a state, which must not be removed.
  using InUse = absl::FunctionRef<bool(const ResultName&)>;

  // Reads the folder.
  explicit UndeliveredResults(UndeliveredOptions options);

  // Reads one state from the disk. Returns whether it has an undelivered result.
  bool Update(const ResultName& name);
  // Handles an offer: the run has not ended.
  void HandleOffer(const ResultName& name);
  // Handles the end of a run, or of the wait for one result. A repeated end does not prolong the
  // time.
  void HandleEnd(const std::string& run);
  void HandleEnd(const ResultName& name);

  bool Contains(const ResultName& name) const { return results_.contains(name); }
  // Returns whether there is no space for another result.
  bool IsFull() const {
    return results_.size() >= options_.max_results || bytes_ >= options_.max_bytes;
  }
  // Returns the runs of unused results of which no end is known.
  std::set<std::string> OpenRuns(InUse in_use) const;

  // Removes the results that are due. While there is no space, also removes those whose runs ended
  // first.
  void RemoveDue(InUse in_use);
  // Returns the time until the next removal, or an infinite one.
  absl::Duration UntilNextRemoval(InUse in_use) const;

 private:
  struct Result {
    absl::Duration removal;  // of the monotonic clock
    bool ended = false;
    int64_t bytes = 0;
  };
  using Results = std::map<ResultName, Result>;

  void Add(const ResultName& name, int64_t bytes);
  void End(Result* result) const;
  void Erase(Results::iterator result);
  // Removes the state. Returns false if another process uses it; it is tried again later.
  bool TryRemove(Results::iterator result, const char* why);

  const UndeliveredOptions options_;
  Results results_;
  int64_t bytes_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_COLLECTION_UNDELIVERED_RESULTS_H_
