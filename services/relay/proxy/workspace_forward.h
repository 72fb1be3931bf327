// muster.v1.WorkspaceService at a relay: nodes save the workspaces of their deployments.
#ifndef MUSTER_SERVICES_RELAY_PROXY_WORKSPACE_FORWARD_H_
#define MUSTER_SERVICES_RELAY_PROXY_WORKSPACE_FORWARD_H_

#include "muster/v1/workspaces.grpc.pb.h"
#include "services/relay/proxy/upstream_call.h"

namespace muster {

// The limits of these calls: a node saves one workspace at a time, in parts of 256 KiB.
inline constexpr Admission::Limits kWorkspaceCalls = {
    .calls = 64, .calls_of_one = 2, .bytes = int64_t{24} << 20, .bytes_of_one = int64_t{1} << 20};

// Thread-safe.
class WorkspaceForward : public v1::WorkspaceService::CallbackService {
 public:
  explicit WorkspaceForward(const ForwardParts& parts) : parts_(parts) {}

  grpc::ServerUnaryReactor* SaveWorkspace(grpc::CallbackServerContext* context,
                                          const v1::SaveWorkspaceRequest* request,
                                          v1::SaveWorkspaceResponse* response) override {
    return ForwardToJobs(parts_, context, "/muster.v1.WorkspaceService/SaveWorkspace",
                         Resource::Own(), request, response);
  }

  // RELAY_DOES_NOT_SERVE.
  grpc::ServerUnaryReactor* ListWorkspaces(grpc::CallbackServerContext* context,
                                           const v1::ListWorkspacesRequest*,
                                           v1::ListWorkspacesResponse*) override {
    return RejectUnary(parts_.runtime, context, "/muster.v1.WorkspaceService/ListWorkspaces");
  }
  grpc::ServerUnaryReactor* GetWorkspace(grpc::CallbackServerContext* context,
                                         const v1::GetWorkspaceRequest*, v1::Workspace*) override {
    return RejectUnary(parts_.runtime, context, "/muster.v1.WorkspaceService/GetWorkspace");
  }
  grpc::ServerUnaryReactor* RestoreWorkspace(grpc::CallbackServerContext* context,
                                             const v1::RestoreWorkspaceRequest*,
                                             v1::Workspace*) override {
    return RejectUnary(parts_.runtime, context, "/muster.v1.WorkspaceService/RestoreWorkspace");
  }
  grpc::ServerUnaryReactor* UnlockWorkspace(grpc::CallbackServerContext* context,
                                            const v1::UnlockWorkspaceRequest*,
                                            v1::Workspace*) override {
    return RejectUnary(parts_.runtime, context, "/muster.v1.WorkspaceService/UnlockWorkspace");
  }

 private:
  const ForwardParts parts_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_WORKSPACE_FORWARD_H_
