// A folder to which a container writes.
#ifndef MUSTER_SERVICES_AGENT_JOBS_UNTRUSTED_FOLDER_H_
#define MUSTER_SERVICES_AGENT_JOBS_UNTRUSTED_FOLDER_H_

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

struct FolderLimits {
  int64_t entries = 0;  // files, folders and links
  int64_t bytes = 0;    // the size of each file, or its space on the disk if that is larger
  int levels = 0;       // of folders
};

// Returns which limit the content of the folder exceeds; empty if it exceeds none. A folder that
// this process may not read is such a reason, too: its size is not known. Follows no links. The
// time depends on the limits alone, also while a container changes the content.
std::string WhyTooLarge(const std::string& folder, const FolderLimits& limits);

// An entry of a folder.
struct UntrustedEntry {
  const std::string& path;  // relative to the folder, with "/" between the names
  int folder;               // the descriptor of the folder that has it
  const std::string& name;  // in that folder
  const struct stat& info;
};

// Calls `visit` for each entry of the folder and of the folders in it, a folder before its content,
// the entries of a folder in the order of their names. It returns whether to enter a folder.
// Follows no links. Ends with the first error, also of a folder that this process may not read, or
// beyond `max_levels`. No container may write to the folder any more.
absl::Status VisitUntrusted(
    const std::string& folder, int max_levels,
    absl::FunctionRef<absl::StatusOr<bool>(const UntrustedEntry& entry)> visit);

// Removes the folder with its content. Follows no links, and depends neither on the depth of the
// content nor on modes that this process may change. If some of the content cannot be removed,
// removes the rest and returns the first error. Succeeds if the folder does not exist. No container
// may write to it any more.
absl::Status RemoveUntrusted(const std::string& folder);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_UNTRUSTED_FOLDER_H_
