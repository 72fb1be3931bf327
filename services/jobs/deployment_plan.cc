#include "services/jobs/deployment_plan.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"
#include "services/common/errors/jobs.h"
#include "services/common/errors/templates.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/signed_command.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/templates/deployment_content.h"
#include "services/common/templates/resolved_deployment.h"
#include "services/common/templates/workspaces.h"
#include "services/jobs/build_plan.h"

namespace muster {
namespace {

constexpr char kDefaultAction[] = "deploy";
// A signing certificate is valid for a day.
constexpr absl::Duration kMaxAhead = absl::Hours(25);

// Checks that a stored version has this document.
absl::Status CheckStored(DocumentStore& documents, DocumentKind kind, const std::string& reference,
                         const std::string& document) {
  ASSIGN_OR_RETURN(const auto stored, documents.Find(kind, reference));
  if (stored.document == document) return absl::OkStatus();
  return errors::InvalidDeployment(
      absl::StrCat("its document of ", reference, " is not the stored one"));
}

absl::Status CheckSourceFields(const v1::CreateDeploymentRequest& request,
                               const v1::Command& command) {
  const bool has_source = !request.retry_of().empty() || !request.destroys().empty();
  if (!request.retry_of().empty() && !request.destroys().empty()) {
    return errors::InvalidDeployment("only one of retry_of and destroys may be set");
  }
  if (request.force() && !has_source) {
    return errors::InvalidDeployment("force is for retry_of and destroys");
  }
  if (has_source && command.container().has_build()) {
    return errors::InvalidDeployment("a build neither retries nor destroys a deployment");
  }
  if (has_source && command.targets().all()) {
    return errors::InvalidDeployment("a retry and a destruction name their nodes");
  }
  return absl::OkStatus();
}

// Sets what `*deployment` has of the content of its command.
absl::Status ReadContent(DocumentStore& documents, const v1::Command& command,
                         v1::Deployment* deployment) {
  const v1::Command::Deployment& content = command.container().deployment();
  ASSIGN_OR_RETURN(const auto resolved, ResolveDeployment(content));
  if (resolved.image() != command.container().image()) {
    return errors::InvalidDeployment("its image is not that of its documents");
  }
  DescribeContent(content, resolved, deployment);
  deployment->set_deployment(content.deployment());
  RETURN_IF_ERROR(
      CheckStored(documents, DocumentKind::kType, deployment->type(), content.type_document()));
  if (!resolved.own) return absl::OkStatus();
  return CheckStored(documents, DocumentKind::kTemplate, deployment->template_(),
                     content.template_document());
}

// Returns the URI of the certificate that signed the command, unverified.
absl::StatusOr<std::string> SignerOf(const v1::SignedCommand& command) {
  const auto chain = ParseChain(command.certificate_chain_pem());
  if (!chain.ok() || chain->empty()) {
    return errors::InvalidDeployment("it has no certificate of its signer");
  }
  return chain->front().Uri();
}

}  // namespace

absl::StatusOr<v1::DeploymentPlan> PlanDeployment(DocumentStore& documents, TemplateFiles& files,
                                                  SecretProvider& secrets,
                                                  WorkspaceStore& workspaces,
                                                  const v1::PlanDeploymentRequest& request) {
  if (request.has_build()) {
    if (!request.template_().empty() || !request.type().empty()) {
      return errors::InvalidBuild("template and type are not set with a build");
    }
    if (!request.workspace().empty()) {
      return errors::InvalidBuild("a build has no workspace");
    }
    return PlanBuild(documents, files, request);
  }
  if (request.template_().empty() == request.type().empty()) {
    return errors::InvalidParameters("exactly one of template, type and build must be set");
  }
  v1::DeploymentPlan plan;
  v1::Command::Deployment& deployment = *plan.mutable_deployment();
  deployment.set_action(request.action().empty() ? kDefaultAction : request.action());
  deployment.set_parameters(request.parameters());
  *deployment.mutable_files() = request.files();
  *deployment.mutable_secrets() = request.secrets();
  RETURN_IF_ERROR(secrets.Resolve(deployment.mutable_secrets()));
  if (!request.workspace().empty()) {
    ASSIGN_OR_RETURN(*deployment.mutable_workspace(), workspaces.Newest(request.workspace()));
  }
  std::string type = request.type();
  if (type.empty()) {
    ASSIGN_OR_RETURN(auto stored, documents.Find(DocumentKind::kTemplate, request.template_()));
    ASSIGN_OR_RETURN(const TemplateDocument own, ReadTemplate(stored.document));
    type = own.type;
    deployment.set_template_document(std::move(stored.document));
  }
  ASSIGN_OR_RETURN(auto stored, documents.Find(DocumentKind::kType, type));
  deployment.set_type_document(std::move(stored.document));
  ASSIGN_OR_RETURN(const auto resolved, ResolveDeployment(deployment));
  plan.set_image(resolved.image());
  if (resolved.limits.time) ToProto(*resolved.limits.time, plan.mutable_time_limit());
  v1::Deployment description;
  DescribeContent(deployment, resolved, &description);
  *plan.mutable_parameters() = std::move(*description.mutable_parameters());
  *plan.mutable_secrets() = std::move(*description.mutable_secrets());
  return plan;
}

absl::StatusOr<v1::Deployment> ReadDeployment(DocumentStore& documents,
                                              const v1::CreateDeploymentRequest& request,
                                              const std::string& caller, absl::Time now) {
  v1::Command command;
  if (!command.ParseFromString(request.command().command())) {
    return errors::InvalidDeployment("its command cannot be parsed");
  }
  RETURN_IF_ERROR(CheckCommand(command));
  if (command.action() != kDeploymentAction && command.action() != kBuildAction) {
    return errors::InvalidDeployment(
        "the action of its command is neither \"deployment\" nor \"build\"");
  }
  // A pending deployment takes a place until then.
  if (FromProto(command.not_after()) > now + kMaxAhead) {
    return errors::InvalidDeployment("its not_after is more than 25 hours ahead");
  }
  ASSIGN_OR_RETURN(const std::string signer, SignerOf(request.command()));
  if (signer != caller) {
    return errors::CommandRefused("it was signed by another than the caller");
  }
  RETURN_IF_ERROR(CheckSourceFields(request, command));
  RETURN_IF_ERROR(CheckWorkspaceTarget(command));
  v1::Deployment deployment;
  RETURN_IF_ERROR(command.container().has_build() ? ReadBuild(documents, command, &deployment)
                                                  : ReadContent(documents, command, &deployment));
  deployment.set_job(command.job());
  deployment.set_state(v1::DEPLOYMENT_STATE_PENDING);
  deployment.set_created_by(caller);
  deployment.set_targets(command.targets().all() ? 0 : command.targets().count());
  deployment.set_retry_of(request.retry_of());
  deployment.set_destroys(request.destroys());
  deployment.set_forced(request.force());
  deployment.set_skip_conformance(request.skip_conformance());
  return deployment;
}

}  // namespace muster
