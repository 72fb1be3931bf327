// Packs a folder into one file.
#ifndef MUSTER_SERVICES_CLIENT_DIRECTORY_ARCHIVE_H_
#define MUSTER_SERVICES_CLIENT_DIRECTORY_ARCHIVE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster::client {

// The name that legacy sidecars give to the archive in the folder.
inline constexpr std::string_view kDirectoryArchiveName = "results.tar.gz";

// Writes all files of `folder` as a gzip-compressed tar to `name` in it, with relative names in
// order and without owners; replaces that file when complete. `folder` has no symbolic links, as
// std::filesystem::canonical returns it; links in it are packed as links and never followed. Omits
// the archive itself, sockets, pipes and devices. Fails with INTERNAL (ARCHIVE_FAILED) if a file
// cannot be read or the archive cannot be written.
absl::Status ArchiveDirectory(const std::string& folder, const std::string& name);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_DIRECTORY_ARCHIVE_H_
