// The rows of deleted workspaces in jobs.db (jobs_schema.h), and the marks of refused versions at
// their deployments. The functions run in a transaction of the caller.
#ifndef MUSTER_SERVICES_JOBS_DELETED_WORKSPACES_H_
#define MUSTER_SERVICES_JOBS_DELETED_WORKSPACES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/deployments.pb.h"
#include "muster/v1/workspaces.pb.h"
#include "services/common/store/sqlite/connection.h"

namespace muster {

// So many deletions are remembered; a further one replaces the oldest.
inline constexpr int64_t kMaxDeletedWorkspaces = 10'000;

// Deletes the rows of a workspace and of its versions, and remembers the deletion for the
// deployments that had the workspace. The row of an upload stays: WorkspaceArchives::Sweep removes
// it with its bytes. `by`: URI of the operator.
void DeleteWorkspaceRows(sqlite::Connection& db, const std::string& name, const std::string& by,
                         absl::Time now);

// Returns the deletion of the workspace that a deployment, or the deployment of a job, had under
// this name. Returns nothing if it was not deleted, or one of both is not remembered any more.
std::optional<v1::WorkspaceDeletion> FindWorkspaceDeletion(sqlite::Connection& db,
                                                           const std::string& name,
                                                           const std::string& deployment);
std::optional<v1::WorkspaceDeletion> FindWorkspaceDeletionOfJob(sqlite::Connection& db,
                                                                const std::string& name,
                                                                const std::string& job);

// Returns "deleted by URI at TIME".
std::string DeletionText(const v1::WorkspaceDeletion& deletion);

// FAILED_PRECONDITION (WORKSPACE_DELETED) if the workspace of a deployment was deleted:
// `workspace_deletion` is set. A later workspace of the name would be another one.
absl::Status CheckWorkspaceKept(const v1::Deployment& deployment);

// Stores at the node of the report that the version it has sent is refused; a repeated call changes
// nothing, and neither does one about a deployment that has no such workspace or record of the
// node.
void MarkWorkspaceRefused(sqlite::Connection& db, const v1::WorkspaceReport& report,
                          absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_DELETED_WORKSPACES_H_
