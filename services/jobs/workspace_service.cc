#include "services/jobs/workspace_service.h"

#include <utility>

#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/workspaces.h"
#include "services/common/identity/caller_uri.h"
#include "services/common/jobs/workspace_report.h"
#include "services/jobs/change_origin.h"
#include "services/jobs/node_caller.h"
#include "services/jobs/page_size.h"

namespace muster {

grpc::ServerUnaryReactor* WorkspaceService::ListWorkspaces(grpc::CallbackServerContext* context,
                                                           const v1::ListWorkspacesRequest* request,
                                                           v1::ListWorkspacesResponse* response) {
  return Answer(runtime_, context, "/muster.v1.WorkspaceService/ListWorkspaces",
                {*request, response},
                [=, this](Call& call) { return List(call, *request, response); });
}

absl::Status WorkspaceService::List(Call& call, const v1::ListWorkspacesRequest& request,
                                    v1::ListWorkspacesResponse* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  ASSIGN_OR_RETURN(const size_t limit, PageSize(request.page_size()));
  ASSIGN_OR_RETURN(auto page, parts_.workspaces.List(request.page_token(), limit,
                                                     response->mutable_next_page_token()));
  for (v1::Workspace& workspace : page) *response->add_workspaces() = std::move(workspace);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* WorkspaceService::GetWorkspace(grpc::CallbackServerContext* context,
                                                         const v1::GetWorkspaceRequest* request,
                                                         v1::Workspace* response) {
  return Answer(runtime_, context, "/muster.v1.WorkspaceService/GetWorkspace", {*request, response},
                [=, this](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  ASSIGN_OR_RETURN(*response, parts_.workspaces.Get(request->workspace()));
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* WorkspaceService::RestoreWorkspace(
    grpc::CallbackServerContext* context, const v1::RestoreWorkspaceRequest* request,
    v1::Workspace* response) {
  return Answer(runtime_, context, "/muster.v1.WorkspaceService/RestoreWorkspace",
                {*request, response},
                [=, this](Call& call) { return Restore(call, *request, response); });
}

absl::Status WorkspaceService::Restore(Call& call, const v1::RestoreWorkspaceRequest& request,
                                       v1::Workspace* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  RETURN_IF_ERROR(parts_.workspaces.Restore(request.workspace(), request.version(), OriginOf(call),
                                            parts_.clock.Now()));
  ASSIGN_OR_RETURN(*response, parts_.workspaces.Get(request.workspace()));
  Log(LogLevel::kInfo, "an older version of a workspace is the newest one now",
      {{"workspace", request.workspace()},
       {"restored", request.version()},
       {"version", response->latest()},
       {"by", UriOf(call.caller())}});
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* WorkspaceService::UnlockWorkspace(
    grpc::CallbackServerContext* context, const v1::UnlockWorkspaceRequest* request,
    v1::Workspace* response) {
  return Answer(runtime_, context, "/muster.v1.WorkspaceService/UnlockWorkspace",
                {*request, response},
                [=, this](Call& call) { return Unlock(call, *request, response); });
}

// A workspace without versions does not exist once it is free.
absl::Status WorkspaceService::Unlock(Call& call, const v1::UnlockWorkspaceRequest& request,
                                      v1::Workspace* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  ASSIGN_OR_RETURN(const auto before, parts_.workspaces.Get(request.workspace()));
  RETURN_IF_ERROR(parts_.workspaces.Unlock(request.workspace(), request.deployment(),
                                           OriginOf(call), parts_.clock.Now()));
  auto after = parts_.workspaces.Get(request.workspace());
  if (after.ok()) {
    *response = *std::move(after);
  } else if (absl::IsNotFound(after.status())) {
    response->set_workspace(request.workspace());
    response->set_state(v1::WORKSPACE_STATE_FREE);
  } else {
    return after.status();
  }
  if (before.state() == v1::WORKSPACE_STATE_FREE) return absl::OkStatus();
  Log(LogLevel::kWarning, "a workspace is taken from an ended deployment; its version is refused",
      {{"workspace", request.workspace()},
       {"deployment", before.deployment()},
       {"node", before.node()},
       {"version", response->latest()},
       {"by", UriOf(call.caller())}});
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* WorkspaceService::DeleteWorkspace(
    grpc::CallbackServerContext* context, const v1::DeleteWorkspaceRequest* request,
    v1::DeleteWorkspaceResponse* response) {
  return Answer(runtime_, context, "/muster.v1.WorkspaceService/DeleteWorkspace",
                {*request, response}, [=, this](Call& call) { return Delete(call, *request); });
}

absl::Status WorkspaceService::Delete(Call& call, const v1::DeleteWorkspaceRequest& request) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  // As UnlockWorkspace: nothing but the word of a gateway proves who its client is.
  if (!request.deployment().empty() && call.caller().via) {
    return errors::WorkspaceNotTakenThroughGateway(UriOf(call.caller()));
  }
  const auto remove = [&] {
    return parts_.workspaces.Delete(request.workspace(), request.deployment(), OriginOf(call),
                                    parts_.clock.Now());
  };
  auto deleted = remove();
  // It is what makes room on a full disk.
  if (absl::IsResourceExhausted(deleted.status()) && parts_.reserve.Release()) deleted = remove();
  if (!deleted.ok()) return deleted.status();
  Log(LogLevel::kInfo, "a workspace is deleted, with all versions",
      {{"workspace", request.workspace()},
       {"versions", deleted->versions_size()},
       {"bytes", deleted->size()},
       {"deployment", deleted->deployment()},
       {"node", deleted->node()},
       {"by", UriOf(call.caller())}});
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* WorkspaceService::SaveWorkspace(grpc::CallbackServerContext* context,
                                                          const v1::SaveWorkspaceRequest* request,
                                                          v1::SaveWorkspaceResponse* response) {
  return Answer(saving_, context, "/muster.v1.WorkspaceService/SaveWorkspace", {*request, response},
                [=, this](Call& call) { return Save(call, *request, response); });
}

absl::Status WorkspaceService::CheckReport(const Call& call,
                                           const v1::WorkspaceReport& report) const {
  if (!IsCallOfNode(call, parts_.fleet, report.node())) {
    return errors::WorkspaceRefused("the caller is another node");
  }
  ASSIGN_OR_RETURN(const auto signer, VerifyWorkspaceReport(report, parts_.fleet, parts_.chains));
  if (IsRevoked(*signer, parts_.revocations)) {
    return errors::WorkspaceRefused("the node is revoked");
  }
  return absl::OkStatus();
}

absl::Status WorkspaceService::Save(Call& call, const v1::SaveWorkspaceRequest& request,
                                    v1::SaveWorkspaceResponse* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Own()));
  const v1::WorkspaceReport& report = request.report();
  absl::Status status = CheckReport(call, report);
  if (status.ok()) status = parts_.reserve.CheckData(static_cast<int64_t>(request.data().size()));
  if (status.ok()) {
    auto saved = parts_.archives.Save(request);
    status = saved.status();
    if (saved.ok()) *response = *std::move(saved);
    // Not an error: a relay could make it, and the node would drop its archive.
    if (ReasonOf(status) == "WORKSPACE_LOST") {
      RETURN_IF_ERROR(parts_.workspaces.MarkRefused(report, parts_.clock.Now()));
      response->set_lost(std::string(status.message()));
    }
    RETURN_IF_ERROR(SignWorkspaceAnswer(parts_.identity(), parts_.fleet, report, response));
  }
  if (!status.ok()) {
    LogLimited(LogLevel::kWarning, "a workspace is not saved", UriOf(call.caller()),
               {{"workspace", report.workspace().workspace()},
                {"job", report.job()},
                {"caller", UriOf(call.caller())},
                {"relay", RelayOf(call)},
                {"error", status}});
    return response->lost().empty() ? status : absl::OkStatus();
  }
  if (!response->saved()) return absl::OkStatus();
  Log(LogLevel::kInfo, "a workspace is saved",
      {{"workspace", report.workspace().workspace()},
       {"job", report.job()},
       {"node", report.node()},
       {"relay", RelayOf(call)},
       {"bytes", report.workspace().size()}});
  return absl::OkStatus();
}

}  // namespace muster
