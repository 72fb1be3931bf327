// The rows of workspaces in jobs.db (jobs_schema.h), and which deployment has each of them. The
// functions run in a transaction of the caller.
#ifndef MUSTER_SERVICES_JOBS_WORKSPACE_ROWS_H_
#define MUSTER_SERVICES_JOBS_WORKSPACE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/deployments.pb.h"
#include "muster/v1/workspaces.pb.h"
#include "services/common/store/sqlite/connection.h"

namespace muster {

inline constexpr int64_t kMaxWorkspaces = 1'000;
inline constexpr int64_t kMaxWorkspaceVersions = 10;

struct WorkspaceRow {
  std::string name;
  std::string data_key;  // wrapped; empty: none yet
  int64_t latest = 0;
  v1::WorkspaceState state = v1::WORKSPACE_STATE_FREE;
  // The deployment that has it, unless it is free.
  std::string deployment;
  std::string job;
  std::string node;
  absl::Time since;
  std::string problem;
};

struct WorkspaceVersionRow {
  int64_t version = 0;
  std::string upload;
  std::string sha256;
  int64_t size = 0;
  std::string deployment;
  std::string job;
  std::string node;
  absl::Time created_at;
  int64_t omitted = 0;
  int64_t restored_from = 0;
  std::string restored_by;
};

struct WorkspaceUploadRow {
  std::string name;
  std::string upload;
  std::string job;
  std::string sha256;
  int64_t size = 0;
};

std::optional<WorkspaceRow> ReadWorkspace(sqlite::Connection& db, const std::string& name);
// Returns the names after `token`, at most `limit`.
std::vector<std::string> ReadWorkspaceNames(sqlite::Connection& db, const std::string& token,
                                            size_t limit);
void SetDataKey(sqlite::Connection& db, const std::string& name, const std::string& wrapped);

std::optional<WorkspaceVersionRow> ReadWorkspaceVersion(sqlite::Connection& db,
                                                        const std::string& name, int64_t version);
// Returns the versions, the newest first.
std::vector<WorkspaceVersionRow> ReadWorkspaceVersions(sqlite::Connection& db,
                                                       const std::string& name);
// Returns the version that the job has saved with this digest.
std::optional<WorkspaceVersionRow> ReadVersionOfJob(sqlite::Connection& db, const std::string& name,
                                                    const std::string& job,
                                                    const std::string& sha256);
// Stores the version as the newest one, and deletes the oldest beyond kMaxWorkspaceVersions.
void AddWorkspaceVersion(sqlite::Connection& db, const std::string& name,
                         const WorkspaceVersionRow& row);

std::optional<WorkspaceUploadRow> ReadWorkspaceUpload(sqlite::Connection& db,
                                                      const std::string& name);
std::vector<WorkspaceUploadRow> ReadWorkspaceUploads(sqlite::Connection& db);
void WriteWorkspaceUpload(sqlite::Connection& db, const WorkspaceUploadRow& row);
void DeleteWorkspaceUpload(sqlite::Connection& db, const WorkspaceUploadRow& row);
// Returns the blobs of all versions.
std::vector<std::string> ReadWorkspaceBlobs(sqlite::Connection& db);
// Returns the bytes of all versions and uploads.
int64_t ReadWorkspaceUsage(sqlite::Connection& db);

// Makes the workspace free. One without versions is deleted.
void ReleaseWorkspace(sqlite::Connection& db, const std::string& name);

// FAILED_PRECONDITION (WORKSPACE_IN_USE, WORKSPACE_SUSPECT) unless the workspace is free.
absl::Status CheckFree(const WorkspaceRow& row);

// Returns the newest version of a workspace, for the command of a deployment; version 0 if it does
// not exist. The errors of CheckFree.
absl::Status ReadNewestVersion(sqlite::Connection& db, const std::string& name,
                               v1::Command::WorkspaceReference* reference);

// Gives the workspace of a new deployment to it; does nothing if it has none. `node` is its only
// target. FAILED_PRECONDITION (WORKSPACE_IN_USE, WORKSPACE_SUSPECT, WORKSPACE_CHANGED),
// RESOURCE_EXHAUSTED (TOO_MANY_WORKSPACES).
absl::Status AcquireWorkspace(sqlite::Connection& db, const v1::Deployment& deployment,
                              const std::string& node, absl::Time now);

// Handles the end of a deployment: its workspace becomes free if the container did not start or
// changed nothing; SAVING if the node has signed that it saves a version; otherwise SUSPECT. Does
// nothing if the deployment does not have a workspace any more. `id`: of its row.
void SettleWorkspace(sqlite::Connection& db, int64_t id, const v1::Deployment& deployment);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_WORKSPACE_ROWS_H_
