// The files of a template's source, as they are read.
#ifndef MUSTER_CLI_SOURCES_SOURCE_FILES_H_
#define MUSTER_CLI_SOURCES_SOURCE_FILES_H_

#include <google/protobuf/repeated_field.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"

namespace muster::cli {

struct SourceLimits {
  int entries = 10'000;  // files and folders
  int files = 1'000;     // as a command has at most (files.h)
  int64_t bytes = 0;     // of all files together
  int levels = 32;       // of folders
};

// Checks each entry before its content is read, and collects the files. All errors name the source
// and the entry: INVALID_ARGUMENT (SOURCE_REFUSED). Not thread-safe.
class SourceFiles {
 public:
  using Files = google::protobuf::RepeatedPtrField<v1::Command::File>;

  // `source` names the source in errors.
  SourceFiles(std::string source, const SourceLimits& limits)
      : source_(std::move(source)), limits_(limits) {}

  // Counts a folder.
  absl::Status AddFolder(std::string_view path);

  // Begins a file; `size` is its declared one, or -1 if it is not known.
  absl::Status BeginFile(std::string_view path, bool executable, int64_t size);
  // Adds to the content of the file that was begun last.
  absl::Status Append(std::string_view data);

  // Refuses an entry.
  absl::Status Refuse(std::string_view path, std::string_view why,
                      std::string_view next_step) const;

  // Returns the number of bytes so far.
  int64_t bytes() const { return bytes_; }

  // Returns the files, sorted by path. Refuses pointers of Git LFS: their content is elsewhere.
  // INVALID_ARGUMENT (SOURCE_UNUSABLE) if there are none.
  absl::StatusOr<Files> Finish();

 private:
  absl::Status CheckEntry(std::string_view path);
  absl::Status TooLarge(std::string_view path) const;

  const std::string source_;
  const SourceLimits limits_;
  int entries_ = 0;
  int64_t bytes_ = 0;
  std::set<std::string, std::less<>> paths_;
  std::vector<v1::Command::File> files_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_SOURCES_SOURCE_FILES_H_
