// Reading an archive back: what the CLI does with one.
//
// Every call reads its source once from the beginning, as a stream. A source that is no archive, or
// is cut short, is INVALID_ARGUMENT with reason TAR_GZ_MALFORMED; errors of the source or the sink
// are passed on as they are.
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

// Copies the file at `path` into `sink`. NOT_FOUND if there is none.
absl::Status ReadArchiveFile(ByteSource& archive, std::string_view path, ByteSink& sink);

// Tells the tree of each plugin, in order; `plugin` empty: of all, else of that one. NOT_FOUND with
// reason PLUGIN_NOT_IN_ARCHIVE if there is none. Holds one plugin's YAML (at most 256 MiB) and tree
// in memory.
absl::Status ReadResultTrees(
    ByteSource& archive, std::string_view plugin,
    const std::function<absl::Status(const std::string& plugin, ResultItem tree)>& visit);

// Writes a new tar.gz with everything of one plugin, under the same paths. The same archive gives
// the same bytes. NOT_FOUND with reason PLUGIN_NOT_IN_ARCHIVE.
absl::StatusOr<ContentInfo> ExtractPlugin(ByteSource& archive, std::string_view plugin,
                                          ByteSink& sink);

struct VerifyReport {
  int64_t entries = 0;                // files in the archive
  int64_t bytes = 0;                  // in them
  int64_t mistakes = 0;               // found; 0: the archive is what its manifest says
  std::vector<std::string> messages;  // the first 100 of them
};

// Compares every file with meta/manifest.json: each is there once, with its size and SHA-256, and
// no other is. Memory: some 60 bytes for each entry.
absl::StatusOr<VerifyReport> VerifyArchive(ByteSource& archive);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_ARCHIVE_READER_H_
