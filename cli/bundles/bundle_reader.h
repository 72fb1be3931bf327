// Reads bundles of strangers.
#ifndef MUSTER_CLI_BUNDLES_BUNDLE_READER_H_
#define MUSTER_CLI_BUNDLES_BUNDLE_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/bundles/bundle_index.h"
#include "cli/bundles/bundle_writer.h"

namespace muster::cli {

// Unpacks the bundle at `path`, a regular file, into an empty folder, and returns its members. Each
// entry is compared with the index before a byte of it is stored, and its digest afterwards: a
// bundle with another, a missing, a repeated or a changed member is refused, as are links, devices
// and sparse files. The stored bytes are never more than those of the bundle. `progress` receives
// bytes of `total`, which is set before its first call.
//
// INVALID_ARGUMENT (BUNDLE_UNUSABLE), RESOURCE_EXHAUSTED (DISK_FULL, before anything is stored if
// the folder has too little space); the errors of ErrnoError.
absl::StatusOr<std::vector<BundleMember>> UnpackBundle(const std::string& path,
                                                       const std::string& folder, int64_t* total,
                                                       const BundleProgress& progress);

}  // namespace muster::cli

#endif  // MUSTER_CLI_BUNDLES_BUNDLE_READER_H_
