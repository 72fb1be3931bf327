// Writes the entries of one result.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_WRITER_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_WRITER_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/archive/archived_result.h"
#include "services/common/archive/manifest.h"
#include "services/common/archive/result_unpacker.h"
#include "services/common/archive/results_tree.h"
#include "services/common/archive/tar_gz_writer.h"
#include "services/common/base/io.h"

namespace muster {

// Decides how each result is stored, writes it, and passes it to the plugin's tree and the
// manifest. Not thread-safe.
class ResultWriter {
 public:
  struct Counts {
    int64_t entries = 0;
    int64_t stored_as_is = 0;
    int64_t damaged = 0;
  };

  ResultWriter(TarGzWriter& tar, ManifestWriter& manifest, const UnpackLimits& limits);

  // Writes the cursor's current row. After an error the archive cannot be completed.
  absl::Status Write(const ArchivedResult& result, ResultCursor& cursor, ResultsTree& tree);

  const Counts& counts() const { return counts_; }

 private:
  class Unpacking;

  absl::Status WriteGenuine();
  absl::Status WriteError();
  absl::Status Unpack();
  // Returns true if the file must be unpacked. Otherwise the notes contain the reason, if it was
  // declared as a tar.
  absl::StatusOr<bool> ShouldUnpack();
  // Copies `size` bytes to `path`; replaces missing bytes by zeros and adds a note.
  absl::Status Copy(const std::string& path, int64_t size, ByteSource& source,
                    std::string_view expected_sha256, bool partial);
  absl::StatusOr<std::string> CopyBytes(const std::string& path, int64_t size, ByteSource& source,
                                        ResultReader* reader);
  absl::Status WriteErrorJson(const nlohmann::ordered_json& error);
  absl::Status WriteUnreadable(const absl::Status& why);
  absl::Status AddEntry(const std::string& path, const ContentInfo& content,
                        std::string_view original, bool partial, bool damaged);
  void Note(std::string note) { notes_.push_back(std::move(note)); }
  void NoteDamage(std::string note);

  TarGzWriter& tar_;
  ManifestWriter& manifest_;
  const UnpackLimits limits_;
  std::vector<char> buffer_;
  Counts counts_;
  // The state of the current result:
  const ArchivedResult* result_ = nullptr;
  ResultCursor* cursor_ = nullptr;
  ResultsTree* tree_ = nullptr;
  std::vector<std::string> notes_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_WRITER_H_
