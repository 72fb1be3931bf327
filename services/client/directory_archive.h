// A folder as one file.
#ifndef MUSTER_SERVICES_CLIENT_DIRECTORY_ARCHIVE_H_
#define MUSTER_SERVICES_CLIENT_DIRECTORY_ARCHIVE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster::client {

// What old sidecars call the archive that they put into the folder.
inline constexpr std::string_view kDirectoryArchiveName = "results.tar.gz";

// Writes everything in `folder` as a gzip compressed tar to `archive`, names relative to the folder
// and in order, without owners; replaces `archive` when complete. An archive that lies in the
// folder itself is left out. Sockets, pipes and devices are skipped. INTERNAL (ARCHIVE_FAILED) if a
// file cannot be read or the archive not be written.
absl::Status ArchiveDirectory(const std::string& folder, const std::string& archive);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_DIRECTORY_ARCHIVE_H_
