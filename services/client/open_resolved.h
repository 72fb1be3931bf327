// Opens files that another program may replace by links.
#ifndef MUSTER_SERVICES_CLIENT_OPEN_RESOLVED_H_
#define MUSTER_SERVICES_CLIENT_OPEN_RESOLVED_H_

#include <string>

#include "absl/status/statusor.h"
#include "services/common/base/unique_fd.h"

namespace muster::client {

// Opens a regular file for reading. `path` has no symbolic links, as std::filesystem::canonical
// returns it. Fails with INVALID_ARGUMENT (NOT_A_FILE) if it has one now, so that the file is
// elsewhere, and for other kinds of files; with NOT_FOUND or PERMISSION_DENIED if it cannot be
// opened. Never waits for the writer of a pipe.
absl::StatusOr<UniqueFd> OpenResolved(const std::string& path);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_OPEN_RESOLVED_H_
