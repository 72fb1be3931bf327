// The archive of a run, in Sonobuoy's layout, as one stream.
//
//   meta/config.json, info.json, clusterhealth.json, query-time.json, run.log    the run
//   plugins/<plugin>/definition.json                      as run
//   plugins/<plugin>/results/<node or global>/...         the file, or what was in the gzip tar
//   plugins/<plugin>/errors/<node or global>/error.json   why there is no result
//   plugins/<plugin>/errors/<node or global>/partial/...  what had arrived until then
//   plugins/<plugin>/sonobuoy_results.yaml                the tree (result_item.h)
//   meta/manifest.json                                    every entry and where it came from
//
// The manifest (manifest.h) is the last entry. tar wants a file's size before its bytes, so the
// manifest, which grows with the results, is spooled to a file of the caller's meanwhile.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_ARCHIVE_BUILDER_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_ARCHIVE_BUILDER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/archive/archived_result.h"
#include "services/common/archive/item_budget.h"
#include "services/common/archive/result_item.h"
#include "services/common/archive/result_unpacker.h"
#include "services/common/archive/tar_gz_writer.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/io.h"

namespace muster {

struct ArchivePlugin {
  std::string name;
  bool once = false;          // a Job: one result, for the node "global"
  std::string result_format;  // as in the definition: junit, e2e, gojson, manual, raw
  std::vector<std::string> result_files;
  std::string definition_yaml;  // verbatim
};

struct ArchiveRun {
  std::string id;
  std::string title;           // may be empty
  std::string muster_version;  // "0.3.0"
  absl::Time created;          // also the time of every entry
  absl::Duration timeout;
  std::vector<std::string> advertised_hosts;
  std::vector<ArchivePlugin> plugins;
  ByteSource* run_log = nullptr;  // JSON, an object a line; nullptr: an empty log
  int64_t run_log_size = 0;
};

struct ArchiveOptions {
  int gzip_level = 1;
  UnpackLimits unpack;
  int64_t tree_bytes = ItemBudget::kDefaultBytes;  // of one plugin's tree in memory
};

// What came out.
struct ArchiveReport {
  ContentInfo archive;
  int64_t results = 0;
  int64_t entries = 0;       // files in the archive
  int64_t stored_as_is = 0;  // claimed to be a gzip tar, but could not be unpacked
  int64_t damaged = 0;       // stored bytes that were not what had been committed
  std::map<std::string, ResultSummary> plugins;  // by name; at most 100 failed names each
};

// Writes the whole archive into `sink`. `spool` is an empty file open for reading and writing, best
// one without a name (FileOps::CreateUnnamed). The same input gives the same bytes. Memory: one
// row, one buffer, one plugin's tree; see ResultCursor for the order of rows.
//
// An error of the cursor, a source or the sink ends the build (nothing of it is to be kept; try
// again), except DATA_LOSS and NOT_FOUND of a result's bytes: those are gone for good, so the
// archive says so, in the tree and in the manifest, and holds what there is. INVALID_ARGUMENT for
// rows out of order or of an unknown plugin. Blocks on disks: never on a thread that serves gRPC.
absl::StatusOr<ArchiveReport> BuildArchive(const ArchiveRun& run, ResultCursor& results,
                                           std::unique_ptr<File> spool, ByteSink& sink,
                                           const ArchiveOptions& options = {});

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_ARCHIVE_BUILDER_H_
