// Reads files of this machine.
#ifndef MUSTER_CLI_SOURCES_FOLDER_SOURCE_H_
#define MUSTER_CLI_SOURCES_FOLDER_SOURCE_H_

#include <string>

#include "absl/status/status.h"
#include "cli/sources/source_files.h"

namespace muster::cli {

// Adds all files of a folder and its subfolders by their paths in it, except `.git`: it may have
// credentials. A file is executable if its owner may execute it. INVALID_ARGUMENT (SOURCE_REFUSED,
// also for a symbolic link or another special file; SOURCE_UNUSABLE).
absl::Status ReadFolderSource(const std::string& folder, SourceFiles& files);

// Adds one file by its name. INVALID_ARGUMENT (SOURCE_REFUSED, SOURCE_UNUSABLE).
absl::Status ReadFileSource(const std::string& path, SourceFiles& files);

}  // namespace muster::cli

#endif  // MUSTER_CLI_SOURCES_FOLDER_SOURCE_H_
