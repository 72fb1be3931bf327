// The parts that the container of a deployment is provided with: state, secrets, workspace.
#ifndef MUSTER_SERVICES_AGENT_JOBS_JOB_PROVISIONS_H_
#define MUSTER_SERVICES_AGENT_JOBS_JOB_PROVISIONS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/agent/jobs/command_container.h"
#include "services/agent/jobs/content_fetcher.h"
#include "services/agent/jobs/deployment_state.h"
#include "services/agent/jobs/job_folder.h"
#include "services/agent/jobs/job_plan.h"
#include "services/agent/jobs/job_secrets.h"
#include "services/agent/jobs/job_workspace.h"
#include "services/agent/jobs/output_redactor.h"
#include "services/agent/jobs/workspace_outbox.h"

namespace muster {

// Each part may be missing: a job that is no deployment has none. Not thread-safe; calls block on
// the disk.
class JobProvisions {
 public:
  // `workspaces` may be null: the node has none. The folder, the plan and the objects of the host
  // outlive this.
  JobProvisions(const SecretHost& secrets, WorkspaceOutbox* workspaces, const NodeJobFolder& folder,
                std::string job, const JobPlan& plan);

  // Creates the state, and fetches its files and its workspace; `container` names them then.
  // `reads` need no deployment. The errors of DeploymentState::Create and JobWorkspace::Provide,
  // and those of an invalid command.
  absl::Status Create(ContentFetcher::Options reads, CommandContainer::Options* container);

  // Fetches the secrets, after Create. SECRET_UNAVAILABLE.
  absl::Status FetchSecrets(const std::function<bool()>& stopped);

  // Finds what an earlier process of the agent has provided, for a container that was started then.
  void Restore(absl::Time started);

  // Lets the processes of this container (its id) read its secrets.
  void SetContainer(const std::string& id);

  // Passes output with the values of secrets masked; some of it later, or at FinishOutput.
  void Filter(v1::JobStream stream, std::string_view data, OutputRedactor::Sink sink);
  void FinishOutput(OutputRedactor::Sink sink);

  // Returns whether the secrets that are to be masked are lost: the output is dropped then.
  bool secrets_lost() const { return secrets_ != nullptr && secrets_->lost(); }

  // Ends the reading of secrets after the end of the container, as JobSecrets::EndVault.
  std::string EndVault();

  // Returns which limit the state exceeds; empty if it exceeds none, or there is no state.
  std::string WhyTooLarge() const;
  bool has_state() const { return state_.has_value(); }

  // Reads the outputs of an ended container; nothing without a state.
  WrittenOutputs ReadOutputs() const;

  // Null: the deployment has no workspace.
  const JobWorkspace* workspace() const { return workspace_.get(); }

  void RemoveSecrets();

  // Removes the rest, once no container can use it any more, and an unsaved workspace if
  // `with_unsaved`. Logs a failure.
  void RemoveState(bool with_unsaved = false) const;

 private:
  void AddWorkspace(const v1::Command::Deployment& deployment);

  const SecretHost secret_host_;
  WorkspaceOutbox* const outbox_;
  const NodeJobFolder& folder_;
  const std::string job_;
  const JobPlan& plan_;
  const std::optional<DeploymentState> state_;  // of a deployment
  std::unique_ptr<JobSecrets> secrets_;         // null: it has none
  std::unique_ptr<JobWorkspace> workspace_;     // null: it has none
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_PROVISIONS_H_
