// Removes stored files that belong to no record.
#ifndef MUSTER_SERVICES_AGGREGATOR_VERIFY_BLOB_SWEEP_H_
#define MUSTER_SERVICES_AGGREGATOR_VERIFY_BLOB_SWEEP_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "services/common/blob/blob_store.h"
#include "services/common/store/state_store.h"

namespace muster {

// Removes the published blobs that no record names: of runs that were deleted, of uploads that
// expired between publication and commit, and of archives that were not sealed. May run while
// results are delivered. Returns the number of removed blobs.
absl::StatusOr<int64_t> SweepBlobs(StateStore& store, BlobStore& blobs);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_VERIFY_BLOB_SWEEP_H_
