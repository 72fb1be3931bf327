// Builds the archive of a run and seals the run.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_SEALER_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_SEALER_H_

#include <atomic>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/aggregator/runs/redelivery_wait.h"
#include "services/aggregator/uploads/uploads.h"
#include "services/aggregator/verify/read_failures.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"
#include "services/common/blob/blob_store.h"
#include "services/common/store/state_store.h"

namespace muster {

// The time from a failed build of a run to the next one.
inline constexpr absl::Duration kSealRetry = absl::Seconds(5);

// Builds archives on its own threads, because it reads and compresses every byte of a run. A run is
// on one thread at a time; several threads, so that one hostile result delays only its own run.
// Thread-safe.
class Sealer {
 public:
  // `metrics` gets the histogram muster_seal_seconds and the counter of damaged results.
  // `spool_folder` is for a temporary file of each build, `actor` for the audit log. After a failed
  // build the run has a seal_fault, and `on_failure` is called, so that the caller can try again
  // after kSealRetry. A build that found damage fails while `redeliveries` has time for it.
  Sealer(StateStore& store, BlobStore& blobs, Uploads& uploads, FileOps& files,
         std::string spool_folder, const Clock& clock, RedeliveryWait& redeliveries,
         std::string actor, std::function<void(const std::string& run)> on_failure,
         Metrics& metrics, size_t threads = 1);

  // Queues the run, unless it is already queued. It must be in kPostProcessing, with nothing to
  // wait for. During a build of the run it is queued again after the build. After a failed build it
  // is not queued before kSealRetry has passed, because the fault is a change of the run and causes
  // a call itself. Returns the time until the caller must call again; zero if the run is queued.
  absl::Duration Seal(const std::string& run);

  // Cancels the builds that are queued or in progress: they end within one read or write of the
  // disk, and the next process builds them. Does not wait for them; the destructor does.
  void Stop() { stopped_ = true; }

  // Counts the failed reads of the builds, and of other readers of the same blobs.
  ReadFailures& read_failures() { return read_failures_; }

 private:
  enum class Phase { kQueued, kBuilding, kAgain };

  void Post(const std::string& run);
  void BuildQueued(const std::string& run);
  void ReportFault(const std::string& run, const absl::Status& why);
  absl::Status Build(const std::string& run);
  // Returns the number of damaged results.
  absl::StatusOr<int64_t> WriteArchive(const RunView& view, StagedBlob& staged,
                                       ArchiveRecord* archive);
  absl::Status HandleDamage(const RunRecord& run, int64_t damaged);

  StateStore& store_;
  BlobStore& blobs_;
  Uploads& uploads_;
  FileOps& files_;
  const std::string spool_folder_;
  const Clock& clock_;
  RedeliveryWait& redeliveries_;
  const std::string actor_;  // URI
  const std::function<void(const std::string&)> on_failure_;
  const Histogram seconds_;
  const Counter damaged_;
  ReadFailures read_failures_{clock_};
  std::atomic<bool> stopped_ = false;
  Mutex mutex_;
  std::map<std::string, Phase> phases_ ABSL_GUARDED_BY(mutex_);
  // The monotonic times before which runs with a failed build are not built again.
  std::map<std::string, absl::Duration> not_before_ ABSL_GUARDED_BY(mutex_);
  Executor executor_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_SEALER_H_
