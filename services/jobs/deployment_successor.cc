#include "services/jobs/deployment_successor.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/templates.h"
#include "services/common/templates/deployment_content.h"
#include "services/common/templates/resolved_deployment.h"
#include "services/jobs/deleted_workspaces.h"

namespace muster {
namespace {

constexpr int kMaxNamed = 10;

// Why a node is skipped.
enum class Cause { kRetried, kDestroyed, kSucceeded, kNeverStarted, kUnknown };

// Returns why a node is skipped, for people; empty if it is not.
using Skip = absl::FunctionRef<std::string(const SourceNode& node)>;

std::vector<std::string> FirstOf(const std::vector<std::string>& names) {
  const auto first = names | std::views::take(kMaxNamed);
  return {first.begin(), first.end()};
}

// Returns "n1 and 3 more nodes: it succeeded; n2: it never started".
std::string ReasonsText(const std::map<std::string, std::vector<std::string>>& skipped) {
  std::vector<std::string> lines;
  for (const auto& [reason, names] : skipped) {
    const size_t more = names.size() - FirstOf(names).size();
    lines.push_back(absl::StrCat(absl::StrJoin(FirstOf(names), ", "),
                                 more > 0 ? absl::StrCat(" and ", more, " more nodes") : "", ": ",
                                 reason));
  }
  return lines.empty() ? "the names of its nodes are not known" : absl::StrJoin(lines, "; ");
}

// Returns the nodes that are not skipped; maybe none.
SuccessorNodes Choose(const DeploymentSource& source, const std::set<std::string>& wanted,
                      Skip skip) {
  SuccessorNodes chosen;
  std::set<std::string> unknown = wanted;
  for (const SourceNode& node : source.nodes) {
    unknown.erase(node.node);
    if (!wanted.empty() && !wanted.contains(node.node)) continue;
    const std::string why = skip(node);
    if (why.empty()) {
      chosen.nodes.push_back(node.node);
    } else {
      chosen.skipped[why].push_back(node.node);
    }
  }
  if (!unknown.empty()) {
    chosen.skipped["it is not a node of the deployment"] = {unknown.begin(), unknown.end()};
  }
  return chosen;
}

bool IsComplete(const SuccessorNodes& chosen, const std::set<std::string>& wanted) {
  return !chosen.nodes.empty() && (wanted.empty() || chosen.skipped.empty());
}

// Returns the cause if it is that of all skipped nodes, with one text. Else nothing.
std::optional<Cause> OnlyCause(const SuccessorNodes& chosen, const std::set<Cause>& causes) {
  if (chosen.skipped.size() != 1 || causes.size() != 1) return std::nullopt;
  return *causes.begin();
}

absl::Status RefuseRetry(const std::string& id, const SuccessorNodes& chosen,
                         const std::set<Cause>& causes, const std::string& by) {
  const std::string why = ReasonsText(chosen.skipped);
  const auto cause = OnlyCause(chosen, causes);
  if (cause == Cause::kRetried) return errors::DeploymentRetried(id, why, by);
  if (cause == Cause::kSucceeded) return errors::SuccessNotRetriable(id, why);
  if (cause == Cause::kUnknown) return errors::RetryMayRunTwice(id, why);
  return errors::NotRetriable(id, why);
}

absl::Status RefuseDestruction(const std::string& id, const SuccessorNodes& chosen,
                               const std::set<Cause>& causes) {
  const std::string why = ReasonsText(chosen.skipped);
  const auto cause = OnlyCause(chosen, causes);
  if (cause == Cause::kNeverStarted) return errors::NeverStartedNothingToDestroy(id, why);
  if (cause == Cause::kUnknown) return errors::DestructionMayRunTwice(id, why);
  return errors::NothingToDestroy(id, why);
}

absl::StatusOr<v1::Command> CommandOf(const v1::CreateDeploymentRequest& request) {
  v1::Command command;
  if (!command.ParseFromString(request.command().command())) {
    return errors::InvalidDeployment("its command cannot be parsed");
  }
  return command;
}

absl::StatusOr<v1::Command> SourceCommand(const DeploymentSource& source) {
  const v1::DeploymentState state = source.message.state();
  const std::string& id = source.message.deployment();
  if (state == v1::DEPLOYMENT_STATE_PENDING || state == v1::DEPLOYMENT_STATE_RUNNING) {
    return errors::DeploymentNotEnded(id);
  }
  if (source.message.has_build()) return errors::BuildNotRetriable(id);
  if (!source.request.has_command()) return errors::CommandNotKept(id);
  RETURN_IF_ERROR(CheckWorkspaceKept(source.message));
  return CommandOf(source.request);
}

// The id differs, the action of a destruction, and the version of the workspace.
bool IsSameContent(v1::Command::Deployment a, v1::Command::Deployment b) {
  for (v1::Command::Deployment* one : {&a, &b}) {
    one->clear_deployment();
    one->clear_action();
    if (!one->has_workspace()) continue;
    // Its newest version.
    const std::string name = one->workspace().workspace();
    one->mutable_workspace()->Clear();
    one->mutable_workspace()->set_workspace(name);
  }
  return a.SerializeAsString() == b.SerializeAsString();
}

}  // namespace

absl::StatusOr<SuccessorNodes> NodesToRetry(const DeploymentSource& source,
                                            const std::vector<std::string>& wanted, bool force) {
  const std::string& id = source.message.deployment();
  ASSIGN_OR_RETURN(const v1::Command command, SourceCommand(source));
  if (!source.message.destroys().empty()) {
    return errors::DestructionNotRetriable(id, source.message.destroys());
  }
  if (!source.destroyed_by.empty()) {
    return errors::DestroyedNotRetriable(id, source.destroyed_by);
  }
  ASSIGN_OR_RETURN(const auto resolved, ResolveDeployment(command.container().deployment()));
  const bool may_run_twice = force || resolved.is_idempotent();
  const std::set<std::string> names(wanted.begin(), wanted.end());
  std::set<Cause> causes;
  std::string retried_by;
  SuccessorNodes chosen = Choose(source, names, [&](const SourceNode& node) -> std::string {
    if (!node.retried_by.empty()) {
      causes.insert(Cause::kRetried);
      retried_by = node.retried_by;
      return absl::StrCat("deployment ", node.retried_by, " retries it");
    }
    if (!node.destroyed_by.empty()) {
      causes.insert(Cause::kDestroyed);
      return absl::StrCat("deployment ", node.destroyed_by, " destroys it");
    }
    if (node.attempt == Attempt::kSucceeded) {
      causes.insert(Cause::kSucceeded);
      return "it succeeded";
    }
    if (node.attempt == Attempt::kUnknown && !may_run_twice) {
      causes.insert(Cause::kUnknown);
      return "its outcome is not known, and it may have run";
    }
    return "";
  });
  if (!IsComplete(chosen, names)) return RefuseRetry(id, chosen, causes, retried_by);
  return chosen;
}

absl::StatusOr<SuccessorNodes> NodesToDestroy(const DeploymentSource& source,
                                              const std::vector<std::string>& wanted, bool force) {
  const std::string& id = source.message.deployment();
  ASSIGN_OR_RETURN(const v1::Command command, SourceCommand(source));
  v1::Command::Deployment content = command.container().deployment();
  if (content.action() == kDestroyAction) {
    return errors::DestroyActionNotDestroyed(id);
  }
  ASSIGN_OR_RETURN(const auto type, ReadType(content.type_document()));
  if (std::ranges::find(type.actions, kDestroyAction) == type.actions.end()) {
    return errors::NoDestroyAction(source.message.type());
  }
  if (!source.open_successor.empty()) return errors::DeploymentNotEnded(source.open_successor);
  content.set_action(std::string(kDestroyAction));
  ASSIGN_OR_RETURN(const auto resolved, ResolveDeployment(content));
  const bool may_run_twice = force || resolved.is_idempotent();
  const std::set<std::string> names(wanted.begin(), wanted.end());
  std::set<Cause> causes;
  SuccessorNodes chosen = Choose(source, names, [&](const SourceNode& node) -> std::string {
    if (node.attempt == Attempt::kNeverStarted) {
      causes.insert(Cause::kNeverStarted);
      return "it never started";
    }
    if (node.destroyed_by.empty()) return "";
    if (node.destruction == Attempt::kSucceeded) {
      causes.insert(Cause::kDestroyed);
      return absl::StrCat("deployment ", node.destroyed_by, " destroyed it");
    }
    if (node.destruction == Attempt::kUnknown && !may_run_twice) {
      causes.insert(Cause::kUnknown);
      return absl::StrCat("it is not known whether deployment ", node.destroyed_by,
                          " destroyed it");
    }
    return "";
  });
  if (IsComplete(chosen, names)) return chosen;
  if (names.empty() && causes.contains(Cause::kDestroyed) && !causes.contains(Cause::kUnknown)) {
    return errors::DeploymentDestroyed(id, source.destroyed_by);
  }
  return RefuseDestruction(id, chosen, causes);
}

absl::StatusOr<v1::DeploymentPlan> PlanSuccessor(const DeploymentSource& source,
                                                 const v1::PlanDeploymentRequest& request) {
  const bool retries = !request.retry_of().empty();
  const std::vector<std::string> wanted(request.nodes().begin(), request.nodes().end());
  ASSIGN_OR_RETURN(const SuccessorNodes chosen,
                   retries ? NodesToRetry(source, wanted, request.force())
                           : NodesToDestroy(source, wanted, request.force()));
  ASSIGN_OR_RETURN(const v1::Command command, SourceCommand(source));
  v1::Command::Deployment content = command.container().deployment();
  if (!retries) content.set_action(std::string(kDestroyAction));
  ASSIGN_OR_RETURN(const auto resolved, ResolveDeployment(content));
  v1::Deployment description;
  DescribeContent(content, resolved, &description);
  v1::DeploymentPlan plan;
  plan.set_image(description.image());
  *plan.mutable_time_limit() = command.time_limit();
  *plan.mutable_parameters() = description.parameters();
  *plan.mutable_secrets() = description.secrets();
  plan.mutable_nodes()->Assign(chosen.nodes.begin(), chosen.nodes.end());
  for (const auto& [reason, names] : chosen.skipped) {
    v1::SkippedNodes& skipped = *plan.add_skipped();
    skipped.set_reason(reason);
    skipped.set_count(static_cast<int64_t>(names.size()));
    const std::vector<std::string> first = FirstOf(names);
    skipped.mutable_nodes()->Assign(first.begin(), first.end());
  }
  *plan.mutable_source() = source.request.command();
  return plan;
}

absl::Status CheckSuccessor(const DeploymentSource& source,
                            const v1::CreateDeploymentRequest& request) {
  const bool retries = !request.retry_of().empty();
  const std::vector<std::string> wanted(request.nodes().begin(), request.nodes().end());
  RETURN_IF_ERROR((retries ? NodesToRetry(source, wanted, request.force())
                           : NodesToDestroy(source, wanted, request.force()))
                      .status());
  ASSIGN_OR_RETURN(const v1::Command before, SourceCommand(source));
  ASSIGN_OR_RETURN(const v1::Command command, CommandOf(request));
  const v1::Command::Deployment& content = command.container().deployment();
  const v1::Command::Deployment& original = before.container().deployment();
  const std::string action = retries ? original.action() : std::string(kDestroyAction);
  if (content.action() == action && IsSameContent(content, original)) return absl::OkStatus();
  return errors::InvalidDeployment(absl::StrCat("its action must be \"", action,
                                                "\", and its other content that of deployment ",
                                                source.message.deployment()));
}

}  // namespace muster
