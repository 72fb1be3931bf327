// Builds the archive of a run in Sonobuoy's layout, as one stream.
//
//   meta/config.json, info.json, clusterhealth.json, query-time.json, run.log    the run
//   plugins/<plugin>/definition.json                      the definition as it ran
//   plugins/<plugin>/results/<node or global>/...         the file, or the content of the gzip tar
//   plugins/<plugin>/errors/<node or global>/error.json   the error result
//   plugins/<plugin>/errors/<node or global>/partial/...  the bytes that arrived before it
//   plugins/<plugin>/sonobuoy_results.yaml                the tree of outcomes (result_item.h)
//   meta/manifest.json                                    every entry and its origin
//
// The manifest (manifest.h) is the last entry. tar requires a file's size before its bytes, so the
// growing manifest is written to a file of the caller first.
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
  std::string definition_yaml;  // unchanged
};

struct ArchiveRun {
  std::string id;
  std::string title;           // may be empty
  std::string muster_version;  // "0.3.0"
  absl::Time created;          // also the time of every entry
  absl::Duration timeout;
  std::vector<std::string> advertised_hosts;
  std::vector<ArchivePlugin> plugins;
  ByteSource* run_log = nullptr;  // one JSON object per line; nullptr: an empty log
  int64_t run_log_size = 0;
};

struct ArchiveOptions {
  int gzip_level = 1;
  UnpackLimits unpack;
  int64_t tree_bytes = ItemBudget::kDefaultBytes;  // the limit of one plugin's tree in memory
};

// The outcome of a build.
struct ArchiveReport {
  ContentInfo archive;
  int64_t results = 0;
  int64_t entries = 0;                           // files in the archive
  int64_t stored_as_is = 0;                      // declared as a gzip tar that cannot be unpacked
  int64_t damaged = 0;                           // stored bytes that differ from the committed ones
  std::map<std::string, ResultSummary> plugins;  // by name, with at most 100 failed names each
};

// Writes the whole archive into `sink`. `spool` is an empty file open for reading and writing,
// preferably without a name (FileOps::CreateUnnamed). Equal input gives equal bytes. Needs memory
// for one row, one buffer and one plugin's tree; ResultCursor defines the order of rows.
//
// An error of the cursor, a source or the sink ends the build; discard the output and try again.
// DATA_LOSS and NOT_FOUND for the bytes of a result are exceptions: such bytes are lost, so the
// archive contains the remaining bytes, and both the tree and the manifest report the loss. Fails
// with INVALID_ARGUMENT for rows out of order or of an unknown plugin. Blocks on disks: call it on
// no gRPC thread.
absl::StatusOr<ArchiveReport> BuildArchive(const ArchiveRun& run, ResultCursor& results,
                                           std::unique_ptr<File> spool, ByteSink& sink,
                                           const ArchiveOptions& options = {});

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_ARCHIVE_BUILDER_H_
