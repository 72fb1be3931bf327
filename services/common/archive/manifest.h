// meta/manifest.json: every entry of an archive and its origin.
//
//   {"version": 1, "run": "...", "created": "<RFC 3339>",
//    "results": [
//     {"plugin", "node", "outcome": "genuine|error|timed_out", "generation", "committed_at",
//      "error",                                        the reason for the missing result
//      "media_type", "file_name", "size", "sha256",    of the file as it was delivered
//      "stored": "file|unpacked",                      unpacked: its entries were in a gzip tar
//      "delivered_by", "node_unproven", "vouched_by",  the sender, and the proof of its identity
//      "history": [{"generation", "outcome", "error", "committed_at"}],   replaced outcomes
//      "entries": [{"path", "size", "sha256", "original_name", "partial", "damaged"}],
//      "notes": ["..."]},                              information for readers
//     ...],
//    "files": [{"path", "size", "sha256"}, ...]}       entries that belong to no result
//
// A key that does not apply to a result is omitted. Each result is one line, so line-based tools
// work. Neither writing nor reading needs the whole file in memory. The manifest has no entry for
// itself: the archive's checksum covers it.
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

// An entry of the archive that is not a folder.
struct ManifestEntry {
  std::string path;
  ContentInfo content;
  std::string original_name;  // if the path does not end with it
  bool partial = false;       // a part of a timed-out result
  bool damaged = false;       // differs from the committed bytes: see the notes
};

// Writes a manifest in pieces. Keeps entries without a result in memory until the end (a few for
// each plugin). Not thread-safe.
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
