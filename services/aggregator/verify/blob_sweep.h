// Removes stored files that belong to no record.
#ifndef MUSTER_SERVICES_AGGREGATOR_VERIFY_BLOB_SWEEP_H_
#define MUSTER_SERVICES_AGGREGATOR_VERIFY_BLOB_SWEEP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/blob/blob_store.h"
#include "services/common/store/state_store.h"

namespace muster {

// Removes the published blobs that no record names: of runs that were deleted, of uploads that
// expired between publication and commit, and of archives that were not sealed. May run while
// results are delivered. Not thread-safe.
class BlobSweep {
 public:
  BlobSweep(StateStore& store, BlobStore& blobs) : store_(store), blobs_(blobs) {}

  struct Step {
    int64_t listed = 0;   // blobs
    int64_t removed = 0;  // of them
    bool end = false;     // every run was swept
  };

  // Sweeps one run. After an error the next call continues with the next run.
  absl::StatusOr<Step> Advance();

 private:
  StateStore& store_;
  BlobStore& blobs_;
  std::optional<std::vector<std::string>> runs_;  // that remain; none before the first step
};

// Sweeps every run. Returns the number of removed blobs.
absl::StatusOr<int64_t> SweepBlobs(StateStore& store, BlobStore& blobs);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_VERIFY_BLOB_SWEEP_H_
