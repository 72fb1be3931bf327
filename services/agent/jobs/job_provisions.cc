#include "services/agent/jobs/job_provisions.h"

#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/templates/resolved_deployment.h"

namespace muster {
namespace {

std::optional<DeploymentState> StateOf(const NodeJobFolder& folder) {
  if (!folder.has_deployment()) return std::nullopt;
  return DeploymentState(folder.path());
}

}  // namespace

JobProvisions::JobProvisions(const SecretHost& secrets, WorkspaceOutbox* workspaces,
                             const NodeJobFolder& folder, std::string job, const JobPlan& plan)
    : secret_host_(secrets),
      outbox_(workspaces),
      folder_(folder),
      job_(std::move(job)),
      plan_(plan),
      state_(StateOf(folder)) {}

void JobProvisions::AddWorkspace(const v1::Command::Deployment& deployment) {
  if (!deployment.has_workspace()) return;
  workspace_ = std::make_unique<JobWorkspace>(outbox_, job_, deployment.workspace(), *state_);
}

absl::Status JobProvisions::Create(ContentFetcher::Options reads,
                                   CommandContainer::Options* container) {
  if (!state_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto deployment, folder_.ReadDeployment());
  ASSIGN_OR_RETURN(const auto resolved, ResolveDeployment(deployment));
  container->state = state_->folder();
  if (!deployment.files().empty()) container->files = state_->files();
  reads.deployment = deployment.deployment();
  const ContentFetcher fetcher(std::move(reads));
  RETURN_IF_ERROR(state_->Create(ParametersJson(resolved.parameters), deployment.files(), fetcher));
  AddWorkspace(deployment);
  if (workspace_ != nullptr) {
    RETURN_IF_ERROR(workspace_->Provide(fetcher));
    container->workspace = state_->workspace();
  }
  if (deployment.secrets().empty()) return absl::OkStatus();
  secrets_ = std::make_unique<JobSecrets>(secret_host_, job_, deployment.secrets());
  ASSIGN_OR_RETURN(container->secrets, secrets_->Folder());
  if (resolved.type.vault) {
    container->environment =
        secrets_->ServeVault(deployment.deployment(), plan_.time_limit, kSecretsTarget);
  }
  return absl::OkStatus();
}

absl::Status JobProvisions::FetchSecrets(const std::function<bool()>& stopped) {
  return secrets_ == nullptr ? absl::OkStatus() : secrets_->Provide(plan_.user, stopped);
}

void JobProvisions::Restore(absl::Time started) {
  if (!state_) return;
  const auto deployment = folder_.ReadDeployment();
  if (deployment.ok()) AddWorkspace(*deployment);
  if (deployment.ok() && deployment->secrets().empty()) return;
  // If the command cannot be read, its output may have secrets, and none are known.
  secrets_ = std::make_unique<JobSecrets>(
      secret_host_, job_, deployment.ok() ? deployment->secrets() : SecretReferences());
  if (!deployment.ok()) return;
  secrets_->Restore(deployment->deployment(), started, started + plan_.time_limit);
}

void JobProvisions::SetContainer(const std::string& id) {
  if (secrets_ != nullptr) secrets_->SetContainer(id);
}

void JobProvisions::Filter(v1::JobStream stream, std::string_view data, OutputRedactor::Sink sink) {
  secrets_ == nullptr ? sink(stream, data) : secrets_->Filter(stream, data, sink);
}

void JobProvisions::FinishOutput(OutputRedactor::Sink sink) {
  if (secrets_ != nullptr) secrets_->Finish(sink);
}

std::string JobProvisions::EndVault() {
  return secrets_ == nullptr ? std::string() : secrets_->EndVault();
}

std::string JobProvisions::WhyTooLarge() const {
  return state_ ? state_->WhyTooLarge() : std::string();
}

WrittenOutputs JobProvisions::ReadOutputs() const {
  if (!state_) return {};
  const auto deployment = folder_.ReadDeployment();
  const auto resolved = deployment.ok() ? ResolveDeployment(*deployment) : deployment.status();
  if (!resolved.ok()) return {.problems = {std::string(resolved.status().message())}};
  if (secrets_ == nullptr) {
    return state_->ReadOutputs(resolved->outputs(), resolved->requires_outputs());
  }
  if (secrets_->lost()) {
    return {.problems = {"they may contain secrets, which the node does not have any more"}};
  }
  return state_->ReadOutputs(resolved->outputs(), resolved->requires_outputs(),
                             [this](std::string_view text) { return secrets_->AnyIn(text); });
}

void JobProvisions::RemoveSecrets() {
  if (secrets_ != nullptr) secrets_->Remove();
}

void JobProvisions::RemoveState(bool with_unsaved) const {
  if (plan_.image.empty()) return;
  const DeploymentState state(folder_.path());  // a build has files at most
  const absl::Status status = state.Remove(with_unsaved);
  if (status.ok()) return;
  Log(LogLevel::kWarning, "the state of a deployment cannot be removed; remove it by hand",
      {{"job", job_}, {"folder", state.folder()}, {"error", status}});
}

}  // namespace muster
