// Writes bundles.
#ifndef MUSTER_CLI_BUNDLES_BUNDLE_WRITER_H_
#define MUSTER_CLI_BUNDLES_BUNDLE_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/bundles/bundle_index.h"

namespace muster::cli {

// Receives the number of bytes of members so far. An error ends the work, and is returned.
using BundleProgress = std::function<absl::Status(int64_t bytes)>;

// Writes the tar of these members, which are files in `folder`, to a new file, and makes it
// durable. Equal members give equal bytes. DATA_LOSS if a file has another size or digest than its
// member; the errors of ErrnoError, such as DISK_FULL. Nothing is left after an error but a part of
// the file.
absl::Status WriteBundle(const std::string& folder, std::vector<BundleMember> members,
                         const std::string& path, const BundleProgress& progress);

}  // namespace muster::cli

#endif  // MUSTER_CLI_BUNDLES_BUNDLE_WRITER_H_
