#include "cli/rpc/deployment_client.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/rpc/id_prefix.h"
#include "cli/rpc/operator_channel.h"
#include "cli/rpc/unary_call.h"
#include "muster/v1/deployments.grpc.pb.h"
#include "muster/v1/secrets.grpc.pb.h"
#include "muster/v1/templates.grpc.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/cli.h"
#include "services/common/identity/signed_command.h"

namespace muster::cli {
namespace {

constexpr int kPage = 1'000;
constexpr absl::Duration kShortLimit = absl::Seconds(3);

}  // namespace

struct DeploymentClient::Stubs {
  std::unique_ptr<v1::TemplateService::Stub> templates;
  std::unique_ptr<v1::DeploymentService::Stub> deployments;
  std::unique_ptr<v1::SecretService::Stub> secrets;
  std::string service;  // for messages

  std::string Subject(const std::string& what) const { return absl::StrCat(what, " at ", service); }
};

DeploymentClient::DeploymentClient(std::unique_ptr<Stubs> stubs) : stubs_(std::move(stubs)) {}
DeploymentClient::~DeploymentClient() = default;

absl::StatusOr<std::unique_ptr<DeploymentClient>> DeploymentClient::Open(
    const OperatorContext& context) {
  ASSIGN_OR_RETURN(const auto channel, OpenJobsChannel(context));
  auto stubs = std::make_unique<Stubs>();
  stubs->templates = v1::TemplateService::NewStub(channel);
  stubs->deployments = v1::DeploymentService::NewStub(channel);
  stubs->secrets = v1::SecretService::NewStub(channel);
  stubs->service = absl::StrCat("the jobs service at ", absl::StrJoin(context.jobs_targets, ", "));
  return std::unique_ptr<DeploymentClient>(new DeploymentClient(std::move(stubs)));
}

absl::StatusOr<v1::TemplateType> DeploymentClient::CreateType(const std::string& document) {
  v1::CreateTemplateTypeRequest request;
  request.set_document(document);
  return CallUnary(*stubs_->templates, &v1::TemplateService::Stub::CreateTemplateType, request,
                   stubs_->Subject("a template type"));
}

absl::StatusOr<v1::TemplateType> DeploymentClient::GetType(const std::string& reference) {
  v1::GetTemplateTypeRequest request;
  request.set_type(reference);
  return CallUnary(*stubs_->templates, &v1::TemplateService::Stub::GetTemplateType, request,
                   stubs_->Subject(absl::StrCat("template type ", reference)));
}

absl::StatusOr<v1::ListTemplateTypesResponse> DeploymentClient::ListTypes(
    const v1::ListTemplateTypesRequest& request) {
  return CallUnary(*stubs_->templates, &v1::TemplateService::Stub::ListTemplateTypes, request,
                   stubs_->Subject("the list of template types"));
}

absl::StatusOr<v1::Template> DeploymentClient::CreateTemplate(const std::string& document,
                                                              bool built) {
  v1::CreateTemplateRequest request;
  request.set_document(document);
  request.set_built(built);
  return CallUnary(*stubs_->templates, &v1::TemplateService::Stub::CreateTemplate, request,
                   stubs_->Subject("a template"));
}

absl::StatusOr<v1::Template> DeploymentClient::GetTemplate(const std::string& reference) {
  v1::GetTemplateRequest request;
  request.set_template_(reference);
  return CallUnary(*stubs_->templates, &v1::TemplateService::Stub::GetTemplate, request,
                   stubs_->Subject(absl::StrCat("template ", reference)));
}

absl::StatusOr<v1::ListTemplatesResponse> DeploymentClient::ListTemplates(
    const v1::ListTemplatesRequest& request) {
  return CallUnary(*stubs_->templates, &v1::TemplateService::Stub::ListTemplates, request,
                   stubs_->Subject("the list of templates"));
}

absl::StatusOr<v1::DeploymentPlan> DeploymentClient::Plan(
    const v1::PlanDeploymentRequest& request) {
  return CallUnary(*stubs_->deployments, &v1::DeploymentService::Stub::PlanDeployment, request,
                   stubs_->Subject("a new deployment"));
}

absl::StatusOr<v1::Deployment> DeploymentClient::Create(
    const v1::CreateDeploymentRequest& request) {
  return CallUnary(*stubs_->deployments, &v1::DeploymentService::Stub::CreateDeployment, request,
                   stubs_->Subject("a new deployment"));
}

absl::StatusOr<v1::Deployment> DeploymentClient::GetPage(const v1::GetDeploymentRequest& request) {
  return CallUnary(*stubs_->deployments, &v1::DeploymentService::Stub::GetDeployment, request,
                   stubs_->Subject(absl::StrCat("deployment ", request.deployment())));
}

absl::StatusOr<v1::Deployment> DeploymentClient::GetWithoutNodes(const std::string& deployment) {
  v1::GetDeploymentRequest request;
  request.set_deployment(deployment);
  request.set_page_size(1);
  ASSIGN_OR_RETURN(auto page, GetPage(request));
  page.clear_nodes();
  page.clear_next_page_token();
  return page;
}

absl::StatusOr<v1::Deployment> DeploymentClient::Get(const std::string& deployment) {
  v1::GetDeploymentRequest request;
  request.set_deployment(deployment);
  request.set_name_silent(true);
  v1::Deployment all;
  do {
    ASSIGN_OR_RETURN(auto page, GetPage(request));
    request.set_page_token(page.next_page_token());
    if (request.name_silent()) {
      request.set_name_silent(false);  // the first page has them
    } else {
      *page.mutable_silent_nodes() = std::move(*all.mutable_silent_nodes());
    }
    auto nodes = std::move(*all.mutable_nodes());
    nodes.MergeFrom(page.nodes());
    all = std::move(page);
    *all.mutable_nodes() = std::move(nodes);
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<v1::Deployment> DeploymentClient::Cancel(const std::string& deployment) {
  v1::CancelDeploymentRequest request;
  request.set_deployment(deployment);
  return CallUnary(*stubs_->deployments, &v1::DeploymentService::Stub::CancelDeployment, request,
                   stubs_->Subject(absl::StrCat("deployment ", deployment)));
}

absl::StatusOr<v1::ListDeploymentsResponse> DeploymentClient::List(
    const v1::ListDeploymentsRequest& request) {
  return CallUnary(*stubs_->deployments, &v1::DeploymentService::Stub::ListDeployments, request,
                   stubs_->Subject("the list of deployments"));
}

absl::StatusOr<std::vector<v1::Deployment>> DeploymentClient::ListNewest(int count) {
  return ListNewest(count, kCallLimit, kRetryFor);
}

absl::StatusOr<std::vector<v1::Deployment>> DeploymentClient::ListNewest(int count,
                                                                         absl::Duration limit,
                                                                         absl::Duration retry_for) {
  const absl::Time end = absl::Now() + limit;
  std::vector<v1::Deployment> newest;
  v1::ListDeploymentsRequest request;
  do {  // a page is bounded by its bytes, too
    request.set_page_size(std::min(kPage, count - static_cast<int>(newest.size())));
    ASSIGN_OR_RETURN(auto list,
                     CallUnary(*stubs_->deployments, &v1::DeploymentService::Stub::ListDeployments,
                               request, stubs_->Subject("the list of deployments"),
                               {.limit = end - absl::Now(), .retry_for = retry_for}));
    for (v1::Deployment& one : *list.mutable_deployments()) newest.push_back(std::move(one));
    request.set_page_token(list.next_page_token());
  } while (!request.page_token().empty() && newest.size() < static_cast<size_t>(count));
  return newest;
}

absl::StatusOr<std::map<std::string, std::string>> DeploymentClient::SubjectsByJob() {
  ASSIGN_OR_RETURN(const auto list, ListNewest(kPage, kShortLimit, absl::ZeroDuration()));
  std::map<std::string, std::string> subjects;
  for (const v1::Deployment& one : list) {
    subjects.emplace(one.job(), one.template_().empty() ? one.type() : one.template_());
  }
  return subjects;
}

absl::StatusOr<std::string> DeploymentClient::Resolve(const std::string& text) {
  return ResolveId({"deployment", "deployments", "muster deployment list", kJobIdSize}, text,
                   FromService(errors::NoDeploymentBeginsWith(text), "the list of deployments"),
                   [this](const std::string& token) -> absl::StatusOr<IdPage> {
                     v1::ListDeploymentsRequest request;
                     request.set_page_size(kPage);
                     request.set_page_token(token);
                     ASSIGN_OR_RETURN(const auto list, List(request));
                     IdPage page = {.ids = {}, .next = list.next_page_token()};
                     for (const v1::Deployment& deployment : list.deployments()) {
                       page.ids.push_back(deployment.deployment());
                     }
                     return page;
                   });
}

absl::StatusOr<v1::Secret> DeploymentClient::PutSecret(const std::string& secret,
                                                       std::string value) {
  v1::PutSecretRequest request;
  request.set_secret(secret);
  request.set_value(std::move(value));
  auto stored = CallUnary(*stubs_->secrets, &v1::SecretService::Stub::PutSecret, request,
                          stubs_->Subject(absl::StrCat("secret ", secret)));
  OPENSSL_cleanse(request.mutable_value()->data(), request.value().size());
  return stored;
}

absl::StatusOr<v1::ListSecretsResponse> DeploymentClient::ListSecrets(
    const v1::ListSecretsRequest& request) {
  return CallUnary(*stubs_->secrets, &v1::SecretService::Stub::ListSecrets, request,
                   stubs_->Subject("the list of secrets"));
}

absl::Status DeploymentClient::DeleteSecret(const std::string& secret) {
  v1::DeleteSecretRequest request;
  request.set_secret(secret);
  return CallUnary(*stubs_->secrets, &v1::SecretService::Stub::DeleteSecret, request,
                   stubs_->Subject(absl::StrCat("secret ", secret)))
      .status();
}

}  // namespace muster::cli
