// Reads a zip, tar or tar.gz of a stranger.
#ifndef MUSTER_CLI_SOURCES_SOURCE_ARCHIVE_H_
#define MUSTER_CLI_SOURCES_SOURCE_ARCHIVE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/sources/source_files.h"

namespace muster::cli {

// The kinds by their content.
enum class ArchiveKind { kZip, kTar };

// Adds the files of the archive at `path`, a regular file. Each entry is checked before a byte of
// it is kept. Only files and folders are accepted: no links, devices, encrypted or setuid files, no
// path that is absolute or has "..". The content is at most 100 times as large as the archive, and
// 1 MiB. Returns the kind. INVALID_ARGUMENT (SOURCE_REFUSED names the entry, SOURCE_UNUSABLE).
absl::StatusOr<ArchiveKind> ReadSourceArchive(const std::string& path, SourceFiles& files);

}  // namespace muster::cli

#endif  // MUSTER_CLI_SOURCES_SOURCE_ARCHIVE_H_
