// The folder of a workspace: from its archive to a container, and back.
#ifndef MUSTER_SERVICES_AGENT_JOBS_WORKSPACE_FOLDER_H_
#define MUSTER_SERVICES_AGENT_JOBS_WORKSPACE_FOLDER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/agent/jobs/untrusted_folder.h"
#include "services/common/base/file_ops.h"
#include "services/common/templates/workspaces.h"

namespace muster {

// The limits of a workspace, beside those of a state.
inline constexpr FolderLimits kWorkspaceLimits = {
    .entries = 10'000, .bytes = kMaxWorkspace, .levels = 32};

// An archive of a workspace. A plain value.
struct WorkspaceArchive {
  std::string sha256;  // 32 bytes
  int64_t size = 0;
  int64_t omitted = 0;  // entries that are not in it
};

// Writes an archive of the folder, to which no container may write any more, to a new file, and
// makes its content durable: a gzip-compressed tar of the regular files and the folders, in the
// order of their names. Equal content gives equal bytes: of the modes only the right to execute is
// kept, and no times. Omits other kinds, such as links, and paths that WhyInvalidPath refuses.
//
// RESOURCE_EXHAUSTED (WORKSPACE_TOO_LARGE) and INTERNAL (WORKSPACE_NOT_SAVED: some of the folder
// cannot be read or archived) would be returned again. Others may not: a failure of the disk with
// the archive, INTERNAL (SYSTEM_LIMIT), CANCELLED once `stopped` returns true.
absl::StatusOr<WorkspaceArchive> PackWorkspace(FileOps& ops, const std::string& folder,
                                               const std::string& path,
                                               const std::function<bool()>& stopped);

// Creates the folder from the archive. Any user may change the content. UNAVAILABLE
// (WORKSPACE_UNAVAILABLE) if it is no archive that PackWorkspace writes, ALREADY_EXISTS, or another
// failure of the disk. The folder may then have a part of the content.
absl::Status UnpackWorkspace(FileOps& ops, const std::string& path, const std::string& folder);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_WORKSPACE_FOLDER_H_
