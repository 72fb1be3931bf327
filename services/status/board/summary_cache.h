// The newest summary of a run, for all of its watchers.
#ifndef MUSTER_SERVICES_STATUS_BOARD_SUMMARY_CACHE_H_
#define MUSTER_SERVICES_STATUS_BOARD_SUMMARY_CACHE_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "muster/v1/status.pb.h"

namespace muster {

// Invariant: the summary that Get returns has the current version, and was made within the last
// round of a watch (kWatchPace). So a thousand watchers cost one summary. Not thread-safe.
class SummaryCache {
 public:
  // The run has changed.
  void Invalidate() { ++version_; }
  uint64_t version() const { return version_; }

  // Calls `make` if the summary is obsolete. `now`: monotonic.
  std::shared_ptr<const v1::RunStatus> Get(absl::Duration now,
                                           absl::FunctionRef<v1::RunStatus()> make);

 private:
  uint64_t version_ = 1;
  uint64_t made_of_ = 0;    // the version of summary_
  absl::Duration made_at_;  // monotonic
  std::shared_ptr<const v1::RunStatus> summary_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_SUMMARY_CACHE_H_
