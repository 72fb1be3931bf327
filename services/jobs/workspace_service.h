// The RPCs of workspaces: checks and translates.
#ifndef MUSTER_SERVICES_JOBS_WORKSPACE_SERVICE_H_
#define MUSTER_SERVICES_JOBS_WORKSPACE_SERVICE_H_

#include <functional>
#include <string>
#include <utility>

#include "muster/v1/workspaces.grpc.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/disk_reserve.h"
#include "services/common/identity/revocation.h"
#include "services/common/identity/verified_chains.h"
#include "services/common/jobs/signing_files.h"
#include "services/common/rpc/call.h"
#include "services/jobs/workspace_archives.h"
#include "services/jobs/workspace_store.h"

namespace muster {

// Logs each saved version, each operation of an operator and each refused report, with job, node
// and relay. Thread-safe.
class WorkspaceService final : public v1::WorkspaceService::CallbackService {
 public:
  // The references outlive the service.
  struct Parts {
    WorkspaceStore& workspaces;
    WorkspaceArchives& archives;
    std::string fleet;
    VerifiedChains& chains;
    const RevocationList& revocations;
    std::function<SigningFiles()> identity;  // of this service, now
    DiskReserve& reserve;                    // of the disk with the stores
    const Clock& clock;
  };

  // `saving` executes the calls of nodes, which hash and wait for the disk.
  WorkspaceService(const RpcRuntime& runtime, const RpcRuntime& saving, Parts parts)
      : runtime_(runtime), saving_(saving), parts_(std::move(parts)) {}

  grpc::ServerUnaryReactor* ListWorkspaces(grpc::CallbackServerContext* context,
                                           const v1::ListWorkspacesRequest* request,
                                           v1::ListWorkspacesResponse* response) override;
  grpc::ServerUnaryReactor* GetWorkspace(grpc::CallbackServerContext* context,
                                         const v1::GetWorkspaceRequest* request,
                                         v1::Workspace* response) override;
  grpc::ServerUnaryReactor* RestoreWorkspace(grpc::CallbackServerContext* context,
                                             const v1::RestoreWorkspaceRequest* request,
                                             v1::Workspace* response) override;
  grpc::ServerUnaryReactor* UnlockWorkspace(grpc::CallbackServerContext* context,
                                            const v1::UnlockWorkspaceRequest* request,
                                            v1::Workspace* response) override;
  grpc::ServerUnaryReactor* DeleteWorkspace(grpc::CallbackServerContext* context,
                                            const v1::DeleteWorkspaceRequest* request,
                                            v1::DeleteWorkspaceResponse* response) override;
  grpc::ServerUnaryReactor* SaveWorkspace(grpc::CallbackServerContext* context,
                                          const v1::SaveWorkspaceRequest* request,
                                          v1::SaveWorkspaceResponse* response) override;

 private:
  absl::Status List(Call& call, const v1::ListWorkspacesRequest& request,
                    v1::ListWorkspacesResponse* response);
  absl::Status Restore(Call& call, const v1::RestoreWorkspaceRequest& request,
                       v1::Workspace* response);
  absl::Status Unlock(Call& call, const v1::UnlockWorkspaceRequest& request,
                      v1::Workspace* response);
  absl::Status Delete(Call& call, const v1::DeleteWorkspaceRequest& request);
  absl::Status Save(Call& call, const v1::SaveWorkspaceRequest& request,
                    v1::SaveWorkspaceResponse* response);
  absl::Status CheckReport(const Call& call, const v1::WorkspaceReport& report) const;

  const RpcRuntime runtime_;
  const RpcRuntime saving_;
  const Parts parts_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_WORKSPACE_SERVICE_H_
