// The workspace of one job, from the jobs service to its container, and into the outbox.
#ifndef MUSTER_SERVICES_AGENT_JOBS_JOB_WORKSPACE_H_
#define MUSTER_SERVICES_AGENT_JOBS_JOB_WORKSPACE_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/jobs/content_fetcher.h"
#include "services/agent/jobs/deployment_state.h"
#include "services/agent/jobs/workspace_outbox.h"

namespace muster {

// The path at which the container of a deployment has its workspace.
inline constexpr std::string_view kWorkspaceTarget = "/state/workspace";

// Not thread-safe; calls block on the disk.
class JobWorkspace {
 public:
  // `named` is that of the command; `outbox` outlives this, null: the node has no workspaces.
  JobWorkspace(WorkspaceOutbox* outbox, std::string job, v1::Command::WorkspaceReference named,
               DeploymentState state)
      : outbox_(outbox), job_(std::move(job)), named_(std::move(named)), state_(std::move(state)) {}

  // Creates the folder with the content of the version, and the place for it in the state. The
  // folder is not removed with the state from now on, until the workspace is saved. UNAVAILABLE
  // (WORKSPACE_UNAVAILABLE), with the cause.
  absl::Status Provide(const ContentFetcher& fetcher) const;

  // Saves the folder into the outbox, after the end of the container, and returns the record.
  // `stopped` and the errors: as those of WorkspaceOutbox::Save.
  absl::StatusOr<v1::JobRecord> Save(const std::function<bool()>& stopped) const;

  // Save has failed for too long: what was packed, but not durably, must not become a version of
  // the workspace later. Logs a failure.
  void GiveUp() const;

  // The record is stored: the folder may be removed. Logs a failure.
  void SetSaved() const;

 private:
  absl::Status Fill(const ContentFetcher& fetcher) const;

  WorkspaceOutbox* const outbox_;
  const std::string job_;
  const v1::Command::WorkspaceReference named_;
  const DeploymentState state_;
};

// Returns whether a later call of Save would fail in the same way.
bool IsNeverSaved(const absl::Status& failure);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_WORKSPACE_H_
