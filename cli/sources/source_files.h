// The files of a template's source or of a deployment, as they are read.
#ifndef MUSTER_CLI_SOURCES_SOURCE_FILES_H_
#define MUSTER_CLI_SOURCES_SOURCE_FILES_H_

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/sources/local_file.h"
#include "services/common/base/sha256.h"
#include "services/common/templates/files.h"

namespace muster::cli {

struct SourceLimits {
  int entries = 10'000;             // files and folders
  int files = kMaxFiles;            // of a command
  int64_t bytes = kMaxContentSize;  // of all files together
  int levels = 32;                  // of folders
};

// Checks each entry before its content is read, and collects the files with their sizes and
// SHA-256. All errors name the source and the entry: INVALID_ARGUMENT (SOURCE_REFUSED). Not
// thread-safe.
class SourceFiles {
 public:
  // `source` names the source in errors. The contents of files that are not on this machine yet are
  // written to the folder `contents`.
  SourceFiles(std::string source, const SourceLimits& limits, std::string contents)
      : source_(std::move(source)), limits_(limits), contents_(std::move(contents)) {}

  // Counts a folder.
  absl::Status AddFolder(std::string_view path);

  // Begins a file; `size` is its declared one, or -1 if it is not known. `local`: its path on this
  // machine; empty if its content is to be written.
  absl::Status BeginFile(std::string_view path, bool executable, int64_t size,
                         const std::string& local = "");
  // Adds to the content of the file that was begun last.
  absl::Status Append(std::string_view data);

  // Refuses an entry.
  absl::Status Refuse(std::string_view path, std::string_view why,
                      std::string_view next_step) const;

  // Returns the number of bytes so far.
  int64_t bytes() const { return bytes_; }

  // Returns the files, sorted by path, each with its size and SHA-256 instead of its content,
  // unless it is empty. Refuses pointers of Git LFS: their content is elsewhere. INVALID_ARGUMENT
  // (SOURCE_UNUSABLE) if there are none.
  absl::StatusOr<std::vector<LocalFile>> Finish();

 private:
  absl::Status CheckEntry(std::string_view path);
  absl::Status TooLarge(std::string_view path) const;
  absl::Status EndFile();
  absl::Status NotWritten() const;

  const std::string source_;
  const SourceLimits limits_;
  const std::string contents_;
  int entries_ = 0;
  int64_t bytes_ = 0;
  std::set<std::string, std::less<>> paths_;
  std::vector<LocalFile> files_;
  // The state of the last file.
  bool open_ = false;
  std::ofstream out_;
  Sha256 sha256_;
  int64_t declared_ = -1;
  std::string start_;  // its first bytes
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_SOURCES_SOURCE_FILES_H_
