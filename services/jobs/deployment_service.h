// The RPCs of deployments: checks and translates.
#ifndef MUSTER_SERVICES_JOBS_DEPLOYMENT_SERVICE_H_
#define MUSTER_SERVICES_JOBS_DEPLOYMENT_SERVICE_H_

#include "muster/v1/deployments.grpc.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/disk_reserve.h"
#include "services/common/rpc/call.h"
#include "services/jobs/command_ca.h"
#include "services/jobs/conformance_store.h"
#include "services/jobs/deployment_runner.h"
#include "services/jobs/deployment_store.h"
#include "services/jobs/document_store.h"
#include "services/jobs/secret_provider.h"
#include "services/jobs/template_files.h"
#include "services/jobs/workspace_store.h"

namespace muster {

// Thread-safe.
class DeploymentService final : public v1::DeploymentService::CallbackService {
 public:
  // The references outlive the service.
  struct Parts {
    DocumentStore& documents;
    TemplateFiles& template_files;
    DeploymentStore& deployments;
    SecretProvider& secrets;
    WorkspaceStore& workspaces;
    RpcRuntime vault_runtime;  // for calls that wait for a Vault
    DeploymentRunner& runner;
    ConformanceStore& conformance;
    const CommandCa& command_ca;
    DiskReserve& reserve;  // of the disk with the stores
    const Clock& clock;
  };

  DeploymentService(const RpcRuntime& runtime, const Parts& parts)
      : runtime_(runtime), parts_(parts) {}

  grpc::ServerUnaryReactor* PlanDeployment(grpc::CallbackServerContext* context,
                                           const v1::PlanDeploymentRequest* request,
                                           v1::DeploymentPlan* response) override;
  grpc::ServerUnaryReactor* CreateDeployment(grpc::CallbackServerContext* context,
                                             const v1::CreateDeploymentRequest* request,
                                             v1::Deployment* response) override;
  grpc::ServerUnaryReactor* GetDeployment(grpc::CallbackServerContext* context,
                                          const v1::GetDeploymentRequest* request,
                                          v1::Deployment* response) override;
  grpc::ServerUnaryReactor* ListDeployments(grpc::CallbackServerContext* context,
                                            const v1::ListDeploymentsRequest* request,
                                            v1::ListDeploymentsResponse* response) override;
  grpc::ServerUnaryReactor* CancelDeployment(grpc::CallbackServerContext* context,
                                             const v1::CancelDeploymentRequest* request,
                                             v1::Deployment* response) override;

 private:
  absl::StatusOr<v1::DeploymentPlan> Plan(const Call& call,
                                          const v1::PlanDeploymentRequest& request) const;
  absl::Status Create(Call& call, const v1::CreateDeploymentRequest& request,
                      v1::Deployment* response);
  absl::Status CheckNew(const Call& call, const v1::Deployment& deployment,
                        const v1::Command& command, const v1::CreateDeploymentRequest& request);
  absl::Status CheckConformance(const v1::Deployment& deployment,
                                const v1::CreateDeploymentRequest& request);
  absl::Status Get(Call& call, const v1::GetDeploymentRequest& request, v1::Deployment* response);
  absl::Status List(Call& call, const v1::ListDeploymentsRequest& request,
                    v1::ListDeploymentsResponse* response);
  absl::Status Cancel(Call& call, const v1::CancelDeploymentRequest& request,
                      v1::Deployment* response);

  const RpcRuntime runtime_;
  const Parts parts_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_DEPLOYMENT_SERVICE_H_
