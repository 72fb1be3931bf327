#include "cli/rpc/workspace_client.h"

#include "absl/strings/str_cat.h"
#include "cli/rpc/operator_channel.h"
#include "cli/rpc/unary_call.h"
#include "services/common/base/status_macros.h"

namespace muster::cli {
namespace {

using Stub = v1::WorkspaceService::Stub;

constexpr int kPage = 1'000;

std::string Subject(const std::string& workspace) { return absl::StrCat("workspace ", workspace); }

}  // namespace

absl::StatusOr<WorkspaceClient> WorkspaceClient::Open(const OperatorContext& context) {
  ASSIGN_OR_RETURN(const auto channel, OpenJobsChannel(context));
  return WorkspaceClient(v1::WorkspaceService::NewStub(channel));
}

absl::StatusOr<std::vector<v1::Workspace>> WorkspaceClient::List() {
  std::vector<v1::Workspace> workspaces;
  v1::ListWorkspacesRequest request;
  request.set_page_size(kPage);
  do {
    ASSIGN_OR_RETURN(auto page,
                     CallUnary(*stub_, &Stub::ListWorkspaces, request, "the list of workspaces"));
    for (v1::Workspace& one : *page.mutable_workspaces()) workspaces.push_back(std::move(one));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return workspaces;
}

absl::StatusOr<v1::Workspace> WorkspaceClient::Get(const std::string& workspace) {
  v1::GetWorkspaceRequest request;
  request.set_workspace(workspace);
  return CallUnary(*stub_, &Stub::GetWorkspace, request, Subject(workspace));
}

absl::StatusOr<v1::Workspace> WorkspaceClient::Restore(const std::string& workspace,
                                                       int64_t version) {
  v1::RestoreWorkspaceRequest request;
  request.set_workspace(workspace);
  request.set_version(version);
  return CallUnary(*stub_, &Stub::RestoreWorkspace, request, Subject(workspace));
}

absl::StatusOr<v1::Workspace> WorkspaceClient::Unlock(const std::string& workspace,
                                                      const std::string& deployment) {
  v1::UnlockWorkspaceRequest request;
  request.set_workspace(workspace);
  request.set_deployment(deployment);
  return CallUnary(*stub_, &Stub::UnlockWorkspace, request, Subject(workspace));
}

absl::Status WorkspaceClient::Delete(const std::string& workspace, const std::string& deployment) {
  v1::DeleteWorkspaceRequest request;
  request.set_workspace(workspace);
  request.set_deployment(deployment);
  return CallUnary(*stub_, &Stub::DeleteWorkspace, request, Subject(workspace)).status();
}

}  // namespace muster::cli
