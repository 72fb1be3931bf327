// Which files of $MUSTER_HOME a backup contains.
#ifndef MUSTER_CLI_BACKUP_HOME_FILES_H_
#define MUSTER_CLI_BACKUP_HOME_FILES_H_

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster::cli {

// Paths in the home.
inline constexpr char kStateDatabase[] = "aggregator/state.db";
inline constexpr char kJobsDatabase[] = "jobs/jobs.db";
inline constexpr char kBlobFolder[] = "aggregator/blobs/blobs";
inline constexpr char kContentFolder[] = "jobs/contents/blobs";
inline constexpr char kWorkspaceFolder[] = "jobs/workspaces/blobs";

// Returns the paths in `home` that exist and whose content no backup contains. They are state of
// one machine or one moment: an old copy of it would, for example, start a cancelled job again.
std::vector<std::string> OmittedPaths(const std::filesystem::path& home);

// Calls `visit` with the path, relative to `home`, of each file that a backup contains, except the
// databases, the stored results, the contents of files of deployments, and the versions of
// workspaces. Follows symbolic links. A file that is removed meanwhile may be visited.
absl::Status VisitPlainFiles(const std::filesystem::path& home,
                             const std::function<absl::Status(const std::string&)>& visit);

// Does the same for each file of the stored results and archives.
absl::Status VisitBlobs(const std::filesystem::path& home,
                        const std::function<absl::Status(const std::string&)>& visit);

// Does the same for each content of a file of deployments, and each version of a workspace.
absl::Status VisitContents(const std::filesystem::path& home,
                           const std::function<absl::Status(const std::string&)>& visit);

// Returns the name in the records of the blob at a path of VisitBlobs.
std::string BlobNameOf(const std::string& path);

}  // namespace muster::cli

#endif  // MUSTER_CLI_BACKUP_HOME_FILES_H_
