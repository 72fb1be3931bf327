// Reads archives, for the command line.
//
// Every call reads its source once from the beginning, as a stream. A source that is not an
// archive, or is incomplete, fails with INVALID_ARGUMENT (TAR_GZ_MALFORMED). Errors of the source
// or the sink are returned unchanged.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_ARCHIVE_READER_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_ARCHIVE_READER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/archive/result_item.h"
#include "services/common/archive/tar_gz_writer.h"
#include "services/common/base/io.h"

namespace muster {

// Copies the file at `path` into `sink`. Fails with NOT_FOUND if it does not exist.
absl::Status ReadArchiveFile(ByteSource& archive, std::string_view path, ByteSink& sink);

// Passes the tree of each plugin to the function, in order; `plugin` selects one, empty means all.
// Fails with NOT_FOUND (PLUGIN_NOT_IN_ARCHIVE) if there is none. Holds the YAML (at most 256 MiB)
// and the tree of one plugin in memory.
absl::Status ReadResultTrees(
    ByteSource& archive, std::string_view plugin,
    const std::function<absl::Status(const std::string& plugin, ResultItem tree)>& visit);

// Writes a new tar.gz with all files of one plugin, under the same paths. Equal archives give equal
// bytes. Fails with NOT_FOUND (PLUGIN_NOT_IN_ARCHIVE).
absl::StatusOr<ContentInfo> ExtractPlugin(ByteSource& archive, std::string_view plugin,
                                          ByteSink& sink);

struct VerifyReport {
  int64_t entries = 0;                // files in the archive
  int64_t bytes = 0;                  // total size of the files
  int64_t mistakes = 0;               // number of differences; 0: the archive matches its manifest
  std::vector<std::string> messages;  // the first 100 differences
};

// Compares every file with meta/manifest.json: each must exist once, with its size and SHA-256, and
// no other may exist. Needs about 60 bytes of memory for each entry.
absl::StatusOr<VerifyReport> VerifyArchive(ByteSource& archive);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_ARCHIVE_READER_H_
