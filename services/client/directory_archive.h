// Packs a folder into one file.
#ifndef MUSTER_SERVICES_CLIENT_DIRECTORY_ARCHIVE_H_
#define MUSTER_SERVICES_CLIENT_DIRECTORY_ARCHIVE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster::client {

// The name that legacy sidecars give to the archive in the folder.
inline constexpr std::string_view kDirectoryArchiveName = "results.tar.gz";

// Writes all files of `folder` as a gzip-compressed tar to `archive`, with relative names in order
// and without owners; replaces `archive` when complete. Omits an archive in the folder itself,
// sockets, pipes and devices. Fails with INTERNAL (ARCHIVE_FAILED) if a file cannot be read or the
// archive cannot be written.
absl::Status ArchiveDirectory(const std::string& folder, const std::string& archive);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_DIRECTORY_ARCHIVE_H_
