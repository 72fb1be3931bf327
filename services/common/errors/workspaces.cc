// Generated from workspaces.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/workspaces.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status InvalidWorkspace(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_WORKSPACE",
                   absl::StrCat("invalid workspace: ", ToAbsl(why)),
                   "Name one workspace and one node: muster deploy TEMPLATE --node NODE --workspace NAME.");
}

absl::Status WorkspaceNotFound(std::string_view workspace) {
  return MakeError(absl::StatusCode::kNotFound, "WORKSPACE_NOT_FOUND",
                   absl::StrCat("workspace \"", ToAbsl(workspace), "\" not found"),
                   "List the workspaces: muster workspace list. The first deployment with a workspace creates it.");
}

absl::Status WorkspaceVersionNotFound(std::string_view workspace, int64_t version) {
  return MakeError(absl::StatusCode::kNotFound, "WORKSPACE_VERSION_NOT_FOUND",
                   absl::StrCat("workspace \"", ToAbsl(workspace), "\" has no version ", version),
                   absl::StrCat("List the versions: muster workspace versions ", ToAbsl(workspace), ". The newest 10 are kept."));
}

absl::Status WorkspaceInUse(std::string_view workspace, std::string_view deployment, std::string_view since) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "WORKSPACE_IN_USE",
                   absl::StrCat("workspace \"", ToAbsl(workspace), "\" is in use by deployment ", ToAbsl(deployment), " since ", ToAbsl(since)),
                   absl::StrCat("Wait until that deployment has ended and its node has saved the workspace, or cancel it: muster deployment cancel ", ToAbsl(deployment), ". Look at it: muster workspace show ", ToAbsl(workspace), "."));
}

absl::Status WorkspaceSuspect(std::string_view workspace, std::string_view deployment, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "WORKSPACE_SUSPECT",
                   absl::StrCat("workspace \"", ToAbsl(workspace), "\" is suspect: it is not known what deployment ", ToAbsl(deployment), " did to it: ", ToAbsl(why)),
                   absl::StrCat("Wait until its node is reachable again and has saved the workspace. If it never will be, keep the newest stored version: muster workspace unlock ", ToAbsl(workspace), " --deployment ", ToAbsl(deployment), "."));
}

absl::Status SavingWorkspaceNotDeleted(std::string_view workspace, std::string_view deployment, std::string_view node) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "WORKSPACE_IN_USE",
                   absl::StrCat("workspace \"", ToAbsl(workspace), "\" is in use by deployment ", ToAbsl(deployment), ": node ", ToAbsl(node), " has a version that it has not sent yet"),
                   absl::StrCat("Wait until the node is reachable and has sent it. If that version is not needed, delete the workspace without it: muster workspace delete ", ToAbsl(workspace), " --deployment ", ToAbsl(deployment), "."));
}

absl::Status SuspectWorkspaceNotDeleted(std::string_view workspace, std::string_view deployment, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "WORKSPACE_SUSPECT",
                   absl::StrCat("workspace \"", ToAbsl(workspace), "\" is suspect: it is not known what deployment ", ToAbsl(deployment), " did to it: ", ToAbsl(why)),
                   absl::StrCat("Wait until its node is reachable again and has saved the workspace. If it never will be, delete the workspace without that version: muster workspace delete ", ToAbsl(workspace), " --deployment ", ToAbsl(deployment), "."));
}

absl::Status WorkspaceNotTakenThroughGateway(std::string_view caller) {
  return MakeError(absl::StatusCode::kPermissionDenied, "WORKSPACE_NOT_TAKEN",
                   absl::StrCat(ToAbsl(caller), " may not take a workspace from a deployment through a gateway"),
                   "Call the service directly: muster workspace delete NAME --deployment DEPLOYMENT.");
}

absl::Status WorkspaceDeleted(std::string_view workspace, std::string_view deployment, std::string_view what) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "WORKSPACE_DELETED",
                   absl::StrCat("workspace \"", ToAbsl(workspace), "\" of deployment ", ToAbsl(deployment), " was ", ToAbsl(what)),
                   absl::StrCat("A later workspace of this name is another one. If the deployment is to have that one, create it anew: muster deploy TEMPLATE --node NODE --workspace ", ToAbsl(workspace), "."));
}

absl::Status WorkspaceOfOther(std::string_view workspace, std::string_view deployment, std::string_view named) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "WORKSPACE_IN_USE",
                   absl::StrCat("deployment ", ToAbsl(deployment), " has the workspace \"", ToAbsl(workspace), "\", not ", ToAbsl(named)),
                   absl::StrCat("Look at it: muster workspace show ", ToAbsl(workspace), ". To take it from that one: muster workspace unlock ", ToAbsl(workspace), " --deployment ", ToAbsl(deployment), "."));
}

absl::Status WorkspaceChanged(std::string_view workspace, int64_t named, int64_t latest) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "WORKSPACE_CHANGED",
                   absl::StrCat("the command names version ", named, " of workspace \"", ToAbsl(workspace), "\", and the newest one is ", latest),
                   "Run the command again.");
}

absl::Status TooManyWorkspaces(int64_t limit) {
  return MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_WORKSPACES",
                   absl::StrCat("there are ", limit, " workspaces, which is the limit"),
                   "Delete workspaces that nothing uses: muster workspace list, muster workspace delete NAME.");
}

absl::Status WorkspaceQuota(int64_t limit) {
  return MakeError(absl::StatusCode::kResourceExhausted, "WORKSPACE_QUOTA",
                   absl::StrCat("the versions of all workspaces would have more than ", limit, " bytes"),
                   "Delete workspaces that nothing uses: muster workspace delete NAME. Or raise workspaces.quota of the jobs service.");
}

absl::Status WorkspaceRefused(std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "WORKSPACE_REFUSED",
                   absl::StrCat("the report of a workspace is refused: ", ToAbsl(why)),
                   "The log of the jobs service names the node and the relay of the call. If nothing else failed there, revoke the node: muster node revoke.");
}

absl::Status WorkspaceLost(std::string_view workspace, std::string_view deployment, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "WORKSPACE_LOST",
                   absl::StrCat("workspace \"", ToAbsl(workspace), "\" is not saved for deployment ", ToAbsl(deployment), ": ", ToAbsl(why)),
                   "The node keeps the archive for a day in the folder workspaces-refused. If it is needed, copy it from there.");
}

absl::Status WorkspaceDamaged(std::string_view workspace, int64_t version) {
  return MakeError(absl::StatusCode::kDataLoss, "WORKSPACE_DAMAGED",
                   absl::StrCat("version ", version, " of workspace \"", ToAbsl(workspace), "\" cannot be read: it is damaged, or jobs/store.key is not the key that encrypted it"),
                   absl::StrCat("Restore store.key from a backup, or an older version: muster workspace restore ", ToAbsl(workspace), " VERSION."));
}

absl::Status WorkspaceDigestMismatch(std::string_view workspace) {
  return MakeError(absl::StatusCode::kDataLoss, "DIGEST_MISMATCH",
                   absl::StrCat("the parts of workspace \"", ToAbsl(workspace), "\" are not those that the node signed; they are removed"),
                   "Nothing: the agent sends them again. If it repeats, a relay changes them: its name is in the log of the jobs service.");
}

absl::Status WorkspaceUnavailable(std::string_view why) {
  return MakeError(absl::StatusCode::kUnavailable, "WORKSPACE_UNAVAILABLE",
                   absl::StrCat("the workspace of the deployment is not available: ", ToAbsl(why)),
                   "Remove the cause, and try the deployment again: muster deployment retry.");
}

absl::Status WorkspaceTooLarge(std::string_view what) {
  return MakeError(absl::StatusCode::kResourceExhausted, "WORKSPACE_TOO_LARGE",
                   absl::StrCat("the workspace has ", ToAbsl(what)),
                   "Remove files from /state/workspace that can be made again, such as caches. The folder stays on the node for a day: docs/agent.md.");
}

absl::Status WorkspaceNotSaved(std::string_view why) {
  return MakeError(absl::StatusCode::kInternal, "WORKSPACE_NOT_SAVED",
                   absl::StrCat("the workspace cannot be saved: ", ToAbsl(why)),
                   "Remove the cause. The folder stays on the node for a day: docs/agent.md. Then decide by muster workspace unlock.");
}

}  // namespace muster::errors
