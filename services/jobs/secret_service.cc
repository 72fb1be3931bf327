#include "services/jobs/secret_service.h"

#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_join.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/templates.h"
#include "services/common/errors/vault.h"
#include "services/common/identity/caller_uri.h"
#include "services/common/jobs/secrets_exchange.h"
#include "services/jobs/node_caller.h"
#include "services/jobs/page_size.h"
#include "services/jobs/secret_sources.h"

namespace muster {
namespace {

std::string TextOf(const SecretReferences& secrets) {
  std::vector<std::string> texts;
  for (const auto& secret : secrets) texts.push_back(SecretText(secret));
  return absl::StrJoin(texts, " ");
}

}  // namespace

grpc::ServerUnaryReactor* SecretService::PutSecret(grpc::CallbackServerContext* context,
                                                   const v1::PutSecretRequest* request,
                                                   v1::Secret* response) {
  return Answer(runtime_, context, "/muster.v1.SecretService/PutSecret", {*request, response},
                [=, this](Call& call) { return Put(call, *request, response); });
}

absl::Status SecretService::Put(Call& call, const v1::PutSecretRequest& request,
                                v1::Secret* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  RETURN_IF_ERROR(parts_.reserve.CheckData(static_cast<int64_t>(request.ByteSizeLong())));
  ASSIGN_OR_RETURN(*response, parts_.secrets.Put(request.secret(), request.value(),
                                                 UriOf(call.caller()), parts_.clock.Now()));
  Log(LogLevel::kInfo, "a secret is stored",
      {{"secret", request.secret()},
       {"version", response->versions(0).version()},
       {"by", UriOf(call.caller())}});
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* SecretService::ListSecrets(grpc::CallbackServerContext* context,
                                                     const v1::ListSecretsRequest* request,
                                                     v1::ListSecretsResponse* response) {
  return Answer(runtime_, context, "/muster.v1.SecretService/ListSecrets", {*request, response},
                [=, this](Call& call) { return List(call, *request, response); });
}

absl::Status SecretService::List(Call& call, const v1::ListSecretsRequest& request,
                                 v1::ListSecretsResponse* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  ASSIGN_OR_RETURN(const size_t limit, PageSize(request.page_size()));
  ASSIGN_OR_RETURN(auto page, parts_.secrets.List(request.page_token(), limit,
                                                  response->mutable_next_page_token()));
  for (v1::Secret& secret : page) *response->add_secrets() = std::move(secret);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* SecretService::DeleteSecret(grpc::CallbackServerContext* context,
                                                      const v1::DeleteSecretRequest* request,
                                                      v1::DeleteSecretResponse* response) {
  return Answer(runtime_, context, "/muster.v1.SecretService/DeleteSecret", {*request, response},
                [=, this](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  RETURN_IF_ERROR(parts_.secrets.Delete(request->secret(), UriOf(call.caller()),
                                                        parts_.clock.Now()));
                  Log(LogLevel::kInfo, "a secret is deleted",
                      {{"secret", request->secret()}, {"by", UriOf(call.caller())}});
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* SecretService::FetchSecrets(grpc::CallbackServerContext* context,
                                                      const v1::FetchSecretsRequest* request,
                                                      v1::FetchSecretsResponse* response) {
  return AnswerLater(runtime_, context, "/muster.v1.SecretService/FetchSecrets",
                     {*request, response},
                     [=, this](const std::shared_ptr<Call>& call, Finish finish) {
                       Fetch(call, *request, response, std::move(finish));
                     });
}

// A Vault that does not answer must not keep the threads of other calls.
void SecretService::Fetch(const std::shared_ptr<Call>& call, const v1::FetchSecretsRequest& request,
                          v1::FetchSecretsResponse* response, Finish finish) {
  auto deployment = Admit(*call, request);
  if (!deployment.ok()) return finish(deployment.status());
  if (!NamesVault(deployment->secrets())) {
    return finish(Send(*call, request, *deployment, response));
  }
  // Shared, since a queue that is full drops what it was given.
  auto done = std::make_shared<Finish>(std::move(finish));
  const bool posted = parts_.vault_calls.Post(
      call->holder(), [=, this, &request, deployment = *std::move(deployment)] {
        (*done)(Send(*call, request, deployment, response));
      });
  if (posted) return;
  Withdraw(request);
  (*done)(errors::VaultBusy());
}

absl::StatusOr<v1::Command::Deployment> SecretService::Admit(
    Call& call, const v1::FetchSecretsRequest& request) {
  RETURN_IF_ERROR(call.Authorize(Resource::Own()));
  absl::StatusOr<v1::Command::Deployment> deployment =
      IsCallOfNode(call, parts_.fleet, request.node())
          ? AdmitNode(request)
          : errors::SecretsRefused("the caller is another node");
  if (!deployment.ok()) {
    LogLimited(LogLevel::kWarning, "a request for secrets is refused", UriOf(call.caller()),
               {{"job", request.job()},
                {"caller", UriOf(call.caller())},
                {"relay", RelayOf(call)},
                {"error", deployment.status()}});
  }
  return deployment;
}

absl::Status SecretService::CheckNode(const v1::FetchSecretsRequest& request) {
  ASSIGN_OR_RETURN(const auto signer, VerifySecretsRequest(request, parts_.fleet, parts_.chains));
  return IsRevoked(*signer, parts_.revocations) ? errors::SecretsRefused("the node is revoked")
                                                : absl::OkStatus();
}

absl::StatusOr<v1::Command::Deployment> SecretService::AdmitNode(
    const v1::FetchSecretsRequest& request) {
  RETURN_IF_ERROR(CheckNode(request));
  return parts_.reads.Admit(request, parts_.revocations, parts_.clock.Now());
}

// A read that a Vault refused is no read of the node, which asks again.
void SecretService::Withdraw(const v1::FetchSecretsRequest& request) {
  const absl::Status withdrawn = parts_.reads.Withdraw(request);
  if (withdrawn.ok()) return;
  LogLimited(LogLevel::kWarning, "a read of secrets that failed counts", request.job(),
             {{"job", request.job()}, {"node", request.node()}, {"error", withdrawn}});
}

// Reads the values. While a Vault is waited for, the deployment may be cancelled, and its creator
// or the node revoked.
absl::StatusOr<v1::SecretValues> SecretService::Read(const v1::FetchSecretsRequest& request,
                                                     const v1::Command::Deployment& deployment) {
  ASSIGN_OR_RETURN(auto values, parts_.sources.Read(deployment.secrets()));
  if (!NamesVault(deployment.secrets())) return values;
  absl::Status permitted = CheckNode(request);
  if (permitted.ok()) {
    permitted = parts_.reads.Confirm(request, parts_.revocations, parts_.clock.Now());
  }
  if (permitted.ok()) return values;
  Wipe(&values);
  return permitted;
}

absl::Status SecretService::Send(const Call& call, const v1::FetchSecretsRequest& request,
                                 const v1::Command::Deployment& deployment,
                                 v1::FetchSecretsResponse* response) {
  auto read = Read(request, deployment);
  if (!read.ok()) {
    Withdraw(request);
    LogLimited(LogLevel::kWarning, "the secrets of a job cannot be read", deployment.deployment(),
               {{"deployment", deployment.deployment()},
                {"node", request.node()},
                {"error", read.status()}});
    return read.status();
  }
  const absl::Cleanup wipe = [&read] { Wipe(&*read); };
  ASSIGN_OR_RETURN(*response, SealSecrets(parts_.identity(), parts_.fleet, request, *read));
  Log(LogLevel::kInfo, "secrets are sent to a node",
      {{"deployment", deployment.deployment()},
       {"job", request.job()},
       {"node", request.node()},
       {"relay", RelayOf(call)},
       {"secrets", TextOf(deployment.secrets())}});
  return absl::OkStatus();
}

}  // namespace muster
