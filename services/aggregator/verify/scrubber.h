// Verifies the whole store in the background, at a limited rate.
#ifndef MUSTER_SERVICES_AGGREGATOR_VERIFY_SCRUBBER_H_
#define MUSTER_SERVICES_AGGREGATOR_VERIFY_SCRUBBER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/aggregator/verify/blob_sweep.h"
#include "services/aggregator/verify/read_failures.h"
#include "services/aggregator/verify/store_cursor.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/metrics.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/common/blob/blob_store.h"
#include "services/common/store/state_store.h"

namespace muster {

// Reads every stored byte once in each period, and sweeps unreferenced blobs at the end. The
// position is durable: a restart continues a pass. Thread-safe.
class Scrubber {
 public:
  struct Options {
    int64_t rate = 0;                       // bytes per second; 0: disabled
    absl::Duration every;                   // from the end of a pass to the begin of the next one
    std::string actor;                      // the URI in the audit log
    ReadFailures* read_failures = nullptr;  // as in VerifyOptions
  };

  // `metrics` gets muster_scrubbed_bytes_total and muster_damaged_results.
  Scrubber(StateStore& store, BlobStore& blobs, const Clock& clock, TimerService& timers,
           Executor& executor, Options options, Metrics& metrics);

  void Start();
  void Stop() { task_.Stop(); }

 private:
  void Run();
  void BeginPass();
  absl::StatusOr<absl::Duration> Advance();
  absl::Status Resume();
  absl::StatusOr<absl::Duration> Sweep();
  absl::Duration Cost(int64_t bytes, int64_t objects) const;
  absl::Status SavePosition(std::string position);

  StateStore& store_;
  BlobStore& blobs_;
  const Clock& clock_;
  const Options options_;
  const Counter bytes_;
  // These are used by the task alone.
  std::optional<StoreCursor> cursor_;           // none: no pass is in progress
  std::optional<BlobSweep> sweep_;              // at the end of a pass
  absl::Time ended_at_ = absl::InfinitePast();  // the last pass
  absl::Time saved_at_ = absl::InfinitePast();  // the position
  bool resumed_ = false;
  ScheduledTask task_;  // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_VERIFY_SCRUBBER_H_
