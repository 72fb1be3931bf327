// meta/manifest.json: every entry of an archive, what it is and where it came from.
//
//   {"version": 1, "run": "...", "created": "<RFC 3339>",
//    "results": [
//     {"plugin", "node", "outcome": "genuine|error|timed_out", "generation", "committed_at",
//      "error",                                        why there is no genuine result
//      "media_type", "file_name", "size", "sha256",    of the file as it was delivered
//      "stored": "file|unpacked",                      unpacked: its entries were in a gzip tar
//      "delivered_by", "node_unproven", "vouched_by",  who brought it, and how far that is proven
//      "history": [{"generation", "outcome", "error", "committed_at"}],   what it replaced
//      "entries": [{"path", "size", "sha256", "original_name", "partial", "damaged"}],
//      "notes": ["..."]},                              what a reader should know
//     ...],
//    "files": [{"path", "size", "sha256"}, ...]}       entries that belong to no result
//
// A key without meaning for a result is left out. Each result stands on a line of its own, so that
// line tools work; nothing needs the whole file in memory, neither writing nor reading. The
// manifest has no entry of its own: the archive's checksum covers it.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_MANIFEST_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_MANIFEST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/archive/archived_result.h"
#include "services/common/archive/tar_gz_writer.h"
#include "services/common/base/io.h"

namespace muster {

inline constexpr char kManifestPath[] = "meta/manifest.json";

// An entry of the archive, without folders.
struct ManifestEntry {
  std::string path;
  ContentInfo content;
  std::string original_name;  // if the path does not end in it
  bool partial = false;       // what had arrived of a result that timed out
  bool damaged = false;       // not what had been committed: see the notes
};

// Writes a manifest piece by piece. Entries that belong to no result are kept in memory until the
// end (a handful for each plugin). Not thread-safe.
class ManifestWriter {
 public:
  explicit ManifestWriter(ByteSink& sink) : sink_(sink) {}

  absl::Status Begin(std::string_view run, absl::Time created);

  absl::Status BeginResult(const ArchivedResult& result, std::string_view stored);
  absl::Status AddEntry(const ManifestEntry& entry);
  absl::Status EndResult(const std::vector<std::string>& notes);

  void AddFile(std::string_view path, const ContentInfo& content);

  absl::Status End();

 private:
  ByteSink& sink_;
  bool first_result_ = true;
  bool first_entry_ = true;
  std::vector<ManifestEntry> files_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_MANIFEST_H_
