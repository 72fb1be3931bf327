// Builds the archive of a run and seals the run.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_SEALER_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_SEALER_H_

#include <functional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "services/aggregator/uploads/uploads.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"
#include "services/common/blob/blob_store.h"
#include "services/common/store/state_store.h"

namespace muster {

// Builds one archive at a time on its own thread, because it reads and compresses every byte of a
// run. Thread-safe.
class Sealer {
 public:
  // `metrics` gets the histogram muster_seal_seconds. `spool_folder` is for a temporary file of
  // each build. `on_failure` is called after a failed build, so that the caller can try again
  // later.
  Sealer(StateStore& store, BlobStore& blobs, Uploads& uploads, FileOps& files,
         std::string spool_folder, const Clock& clock,
         std::function<void(const std::string& run)> on_failure, Metrics& metrics);

  // Queues the run, unless it is already queued. It must be in kPostProcessing, with nothing to
  // wait for.
  void Seal(const std::string& run);

 private:
  absl::Status Build(const std::string& run);
  absl::Status WriteArchive(const RunView& view, StagedBlob& staged, ArchiveRecord* archive);

  StateStore& store_;
  BlobStore& blobs_;
  Uploads& uploads_;
  FileOps& files_;
  const std::string spool_folder_;
  const Clock& clock_;
  const std::function<void(const std::string&)> on_failure_;
  const Histogram seconds_;
  Mutex mutex_;
  std::set<std::string> queued_ ABSL_GUARDED_BY(mutex_);
  Executor executor_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_SEALER_H_
