#include "services/jobs/deployment_service.h"

#include <algorithm>
#include <utility>

#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/jobs.h"
#include "services/common/errors/runs.h"
#include "services/common/errors/templates.h"
#include "services/common/identity/caller_uri.h"
#include "services/common/identity/signed_command.h"
#include "services/common/rpc/proto_time.h"
#include "services/jobs/change_origin.h"
#include "services/jobs/conformance_report.h"
#include "services/jobs/deployment_plan.h"
#include "services/jobs/deployment_submission.h"
#include "services/jobs/deployment_successor.h"
#include "services/jobs/page_size.h"
#include "services/jobs/secret_sources.h"

namespace muster {

grpc::ServerUnaryReactor* DeploymentService::PlanDeployment(
    grpc::CallbackServerContext* context, const v1::PlanDeploymentRequest* request,
    v1::DeploymentPlan* response) {
  const RpcRuntime& runtime = NamesVault(request->secrets()) ? parts_.vault_runtime : runtime_;
  return Answer(runtime, context, "/muster.v1.DeploymentService/PlanDeployment",
                {*request, response}, [=, this](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  ASSIGN_OR_RETURN(*response, Plan(call, *request));
                  return absl::OkStatus();
                });
}

absl::StatusOr<v1::DeploymentPlan> DeploymentService::Plan(
    const Call& call, const v1::PlanDeploymentRequest& request) const {
  if (!request.has_build() && !request.build_from().empty()) {
    return errors::InvalidBuild("build_from is set without build");
  }
  if (request.retry_of().empty() && request.destroys().empty()) {
    return muster::PlanDeployment(parts_.documents, parts_.template_files, parts_.secrets,
                                  parts_.workspaces, request);
  }
  if (!request.template_().empty() || !request.type().empty() || request.has_build() ||
      !request.workspace().empty() ||
      (!request.retry_of().empty() && !request.destroys().empty())) {
    return errors::InvalidParameters(
        "only one of template, type, build, retry_of and destroys may be set, and workspace only "
        "with "
        "template or type");
  }
  for (const std::string& node : request.nodes()) RETURN_IF_ERROR(ValidateName("node", node));
  ASSIGN_OR_RETURN(const auto source,
                   parts_.deployments.GetSource(request.retry_of().empty() ? request.destroys()
                                                                           : request.retry_of()));
  ASSIGN_OR_RETURN(auto plan, PlanSuccessor(source, request));
  if (const absl::Status secrets = parts_.secrets.Check(plan.secrets()); !secrets.ok()) {
    return ReasonOf(secrets) == "SECRET_NOT_FOUND"
               ? errors::SecretOfSourceNotFound(ToStd(secrets.message()))
               : secrets;
  }
  if (source.message.has_workspace()) {
    ASSIGN_OR_RETURN(*plan.mutable_workspace(),
                     parts_.workspaces.Newest(source.message.workspace().workspace()));
  }
  // A gateway may pretend to be an operator: it does not get sensitive values.
  const bool is_sensitive = std::ranges::any_of(
      plan.parameters(),
      [](const v1::DeploymentParameter& parameter) { return parameter.sensitive(); });
  if (call.caller().via && is_sensitive) plan.clear_source();
  return plan;
}

grpc::ServerUnaryReactor* DeploymentService::CreateDeployment(
    grpc::CallbackServerContext* context, const v1::CreateDeploymentRequest* request,
    v1::Deployment* response) {
  return Answer(runtime_, context, "/muster.v1.DeploymentService/CreateDeployment",
                {*request, response},
                [=, this](Call& call) { return Create(call, *request, response); });
}

absl::Status DeploymentService::Create(Call& call, const v1::CreateDeploymentRequest& request,
                                       v1::Deployment* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  // The operator has not signed this choice, and a gateway may pretend to be one.
  if (request.skip_conformance() && call.caller().via) {
    return errors::ConformanceSkippedThroughGateway(UriOf(call.caller()));
  }
  ASSIGN_OR_RETURN(auto deployment, ReadDeployment(parts_.documents, request, UriOf(call.caller()),
                                                   parts_.clock.Now()));
  ASSIGN_OR_RETURN(const v1::Command command,
                   CheckDeploymentSubmission(request, call.caller().identity.fleet));
  // A repeated call returns what is stored, although a secret was deleted since.
  if (!parts_.deployments.Get(deployment.deployment()).ok()) {
    RETURN_IF_ERROR(CheckNew(call, deployment, command, request));
  }
  RETURN_IF_ERROR(parts_.reserve.CheckData(static_cast<int64_t>(request.ByteSizeLong())));
  ToProto(parts_.clock.Now(), deployment.mutable_create_time());
  ASSIGN_OR_RETURN(auto created, parts_.deployments.Create(
                                     deployment, request,
                                     [&](const DeploymentSource& source) {
                                       return CheckSuccessor(source, request);
                                     },
                                     OriginOf(call).vouched_by));
  if (created.is_new && request.skip_conformance()) {
    Log(LogLevel::kWarning, "a deployment is created without the check of conformance",
        {{"deployment", created.message.deployment()}, {"operator", created.message.created_by()}});
  }
  if (created.is_new) {
    parts_.runner.Add({created.message.deployment(), created.message.created_by()});
  }
  *response = std::move(created.message);
  return absl::OkStatus();
}

// Verifies the certificate of the signer as the root relay does. A gateway names any operator as
// the caller: otherwise it could open a deployment, which gets secrets and a workspace until the
// relay refuses it. A command whose time has not come is verified for its first moment.
absl::Status DeploymentService::CheckNew(const Call& call, const v1::Deployment& deployment,
                                         const v1::Command& command,
                                         const v1::CreateDeploymentRequest& request) {
  const auto command_ca = parts_.command_ca.Get();
  if (!command_ca) return errors::NoCommandAuthority();
  RETURN_IF_ERROR(VerifyCommand(request.command(), *command_ca, call.caller().identity.fleet,
                                std::max(parts_.clock.Now(), FromProto(command.not_before())))
                      .status());
  RETURN_IF_ERROR(parts_.secrets.Check(deployment.secrets()));
  RETURN_IF_ERROR(CheckConformance(deployment, request));
  return deployment.has_workspace() ? parts_.workspaces.CheckQuota() : absl::OkStatus();
}

// A destruction must be possible on any node.
absl::Status DeploymentService::CheckConformance(const v1::Deployment& deployment,
                                                 const v1::CreateDeploymentRequest& request) {
  if (request.skip_conformance() || !request.destroys().empty() ||
      IsConformanceType(deployment.type())) {
    return absl::OkStatus();
  }
  return parts_.conformance.CheckNodes({request.nodes().begin(), request.nodes().end()},
                                       parts_.clock.Now());
}

grpc::ServerUnaryReactor* DeploymentService::GetDeployment(grpc::CallbackServerContext* context,
                                                           const v1::GetDeploymentRequest* request,
                                                           v1::Deployment* response) {
  return Answer(runtime_, context, "/muster.v1.DeploymentService/GetDeployment",
                {*request, response},
                [=, this](Call& call) { return Get(call, *request, response); });
}

absl::Status DeploymentService::Get(Call& call, const v1::GetDeploymentRequest& request,
                                    v1::Deployment* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  ASSIGN_OR_RETURN(const size_t limit, PageSize(request.page_size(), kMaxPage));
  if (!request.page_token().empty() && !ValidateName("node", request.page_token()).ok()) {
    return errors::InvalidPageToken();
  }
  ASSIGN_OR_RETURN(*response, parts_.deployments.Get(request.deployment()));
  if (request.name_silent()) RETURN_IF_ERROR(parts_.deployments.AddSilentNodes(response));
  return parts_.deployments.AddNodes(request.page_token(), limit, kMaxPageBytes, response);
}

grpc::ServerUnaryReactor* DeploymentService::ListDeployments(
    grpc::CallbackServerContext* context, const v1::ListDeploymentsRequest* request,
    v1::ListDeploymentsResponse* response) {
  return Answer(runtime_, context, "/muster.v1.DeploymentService/ListDeployments",
                {*request, response},
                [=, this](Call& call) { return List(call, *request, response); });
}

absl::Status DeploymentService::List(Call& call, const v1::ListDeploymentsRequest& request,
                                     v1::ListDeploymentsResponse* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  ASSIGN_OR_RETURN(const size_t limit, PageSize(request.page_size()));
  ASSIGN_OR_RETURN(auto page, parts_.deployments.List(request.page_token(), limit,
                                                      response->mutable_next_page_token()));
  for (v1::Deployment& deployment : page) {
    deployment.clear_parameters();  // up to 80 KiB of each
    deployment.clear_files();
    deployment.clear_secrets();
    *response->add_deployments() = std::move(deployment);
  }
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* DeploymentService::CancelDeployment(
    grpc::CallbackServerContext* context, const v1::CancelDeploymentRequest* request,
    v1::Deployment* response) {
  return Answer(runtime_, context, "/muster.v1.DeploymentService/CancelDeployment",
                {*request, response},
                [=, this](Call& call) { return Cancel(call, *request, response); });
}

absl::Status DeploymentService::Cancel(Call& call, const v1::CancelDeploymentRequest& request,
                                       v1::Deployment* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  const auto request_cancel = [&] {
    return parts_.deployments.RequestCancel(request.deployment(), OriginOf(call),
                                            parts_.clock.Now());
  };
  auto cancelled = request_cancel();
  if (absl::IsResourceExhausted(cancelled.status()) && parts_.reserve.Release()) {
    cancelled = request_cancel();
  }
  ASSIGN_OR_RETURN(*response, std::move(cancelled));
  parts_.runner.HandleCancelled(request.deployment());
  return absl::OkStatus();
}

}  // namespace muster
