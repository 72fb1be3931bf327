// The workspaces, and the operations of operators on them.
#ifndef MUSTER_SERVICES_JOBS_WORKSPACE_STORE_H_
#define MUSTER_SERVICES_JOBS_WORKSPACE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/workspaces.pb.h"
#include "services/common/store/sqlite/local_database.h"
#include "services/jobs/audit_outbox.h"

namespace muster {

// Thread-safe; calls wait for the disk.
class WorkspaceStore {
 public:
  // `database` with the schema of jobs_schema.h outlives this object. `quota`: of the bytes of all
  // versions and uploads (workspace_archives.h).
  WorkspaceStore(sqlite::LocalDatabase& database, int64_t quota)
      : database_(database), quota_(quota) {}

  // Returns the newest version, for the command of a deployment. INVALID_ARGUMENT
  // (INVALID_WORKSPACE: its name), FAILED_PRECONDITION (WORKSPACE_IN_USE, WORKSPACE_SUSPECT),
  // RESOURCE_EXHAUSTED (WORKSPACE_QUOTA: a further version could not be saved).
  absl::StatusOr<v1::Command::WorkspaceReference> Newest(const std::string& workspace);

  // RESOURCE_EXHAUSTED (WORKSPACE_QUOTA) if no further version can be saved.
  absl::Status CheckQuota();

  // Returns workspaces by name without versions, from the one after `token` on. INVALID_ARGUMENT
  // (INVALID_PAGE_TOKEN).
  absl::StatusOr<std::vector<v1::Workspace>> List(const std::string& token, size_t limit,
                                                  std::string* next);

  // NOT_FOUND (WORKSPACE_NOT_FOUND).
  absl::StatusOr<v1::Workspace> Get(const std::string& workspace);

  // Make an older version the newest one for `by`, and take the workspace from a deployment that
  // has ended, as RestoreWorkspace and UnlockWorkspace of workspaces.proto describe them. A call
  // that changes nothing has no audit record.
  absl::Status Restore(const std::string& workspace, int64_t version, const ChangeOrigin& by,
                       absl::Time now);
  absl::Status Unlock(const std::string& workspace, const std::string& deployment,
                      const ChangeOrigin& by, absl::Time now);

  // Deletes the workspace as DeleteWorkspace of workspaces.proto describes it: durable afterwards.
  // `deployment`: the ended one that may have it; empty: none. Returns the workspace as it was.
  // WorkspaceArchives::Sweep removes its archives. NOT_FOUND (WORKSPACE_NOT_FOUND),
  // FAILED_PRECONDITION (WORKSPACE_IN_USE, WORKSPACE_SUSPECT).
  absl::StatusOr<v1::Workspace> Delete(const std::string& workspace, const std::string& deployment,
                                       const ChangeOrigin& by, absl::Time now);

  // Stores in the deployment of a report that its version is refused. The caller has verified the
  // signature of the report.
  absl::Status MarkRefused(const v1::WorkspaceReport& report, absl::Time now);

  // Returns the bytes of all versions and uploads.
  int64_t Usage();

 private:
  sqlite::LocalDatabase& database_;
  const int64_t quota_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_WORKSPACE_STORE_H_
