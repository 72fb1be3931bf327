#include "services/common/jobs/secrets_exchange.h"

#include <openssl/crypto.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/templates.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/secret.h"

namespace muster {
namespace {

constexpr size_t kMaxChain = size_t{16} << 10;
constexpr std::string_view kInfo = "muster-secrets-v1";

std::string RequestText(std::string_view fleet, const v1::FetchSecretsRequest& request) {
  return absl::StrCat("muster-secrets-request-v1\n", ToAbsl(fleet), "\n", request.job(), "\n",
                      request.node(), "\n", ToHex(request.key()), "\n");
}

std::string AnswerText(std::string_view fleet, const v1::FetchSecretsRequest& request,
                       const v1::FetchSecretsResponse& response) {
  return absl::StrCat(
      "muster-secrets-answer-v1\n", ToAbsl(fleet), "\n", request.job(), "\n", request.node(), "\n",
      ToHex(request.key()), "\n",
      ToHex(Sha256::Of(absl::StrCat(response.encapsulated_key(), response.sealed()))), "\n");
}

std::string AssociatedData(std::string_view fleet, const v1::FetchSecretsRequest& request) {
  return absl::StrCat(ToAbsl(fleet), "\n", request.job(), "\n", request.node(), "\n");
}

absl::Status Refused(const absl::Status& why) {
  return errors::SecretsRefused(ToStd(why.message()));
}

absl::Status CheckAnswer(const v1::FetchSecretsRequest& request, std::string_view fleet,
                         std::span<const Certificate> roots, absl::Time now,
                         const v1::FetchSecretsResponse& response) {
  if (response.certificate_chain_pem().size() > kMaxChain) {
    return errors::SecretUnavailable("the certificates of the answer exceed 16 KiB");
  }
  const auto signer = VerifyClientChain(response.certificate_chain_pem(), roots, now);
  if (!signer.ok()) {
    return errors::SecretUnavailable(
        absl::StrCat("the signer of the answer is not of the fleet: ", signer.status().message()));
  }
  const auto identity = ParseIdentity(signer->uri, fleet);
  if (!identity.ok() || RoleOf(*identity) != Role::kJobs) {
    return errors::SecretUnavailable(
        absl::StrCat("the signer of the answer is no jobs service: ", signer->uri));
  }
  if (signer->key.Verify(AnswerText(fleet, request, response), response.signature())) {
    return absl::OkStatus();
  }
  return errors::SecretUnavailable("the signature of the answer does not match");
}

}  // namespace

void Wipe(v1::SecretValues* values) {
  for (v1::SecretValues::Value& value : *values->mutable_values()) {
    std::string& bytes = *value.mutable_value();
    OPENSSL_cleanse(bytes.data(), bytes.size());
  }
  values->Clear();
}

absl::StatusOr<SecretsRequest> MakeSecretsRequest(const SigningFiles& node_files,
                                                  std::string_view fleet, std::string_view job,
                                                  std::string_view node) {
  ASSIGN_OR_RETURN(HpkeKey key, HpkeKey::Generate());
  SecretsRequest request{std::move(key), {}};
  request.message.set_job(std::string(job));
  request.message.set_node(std::string(node));
  request.message.set_key(request.key.public_key());
  ASSIGN_OR_RETURN(*request.message.mutable_signature(),
                   node_files.key.Sign(RequestText(fleet, request.message)));
  request.message.set_certificate_chain_pem(node_files.chain_pem);
  return request;
}

absl::StatusOr<std::shared_ptr<const VerifiedChain>> VerifySecretsRequest(
    const v1::FetchSecretsRequest& request, std::string_view fleet, VerifiedChains& chains) {
  if (request.certificate_chain_pem().size() > kMaxChain) {
    return errors::SecretsRefused("its certificates exceed 16 KiB");
  }
  if (request.key().size() != kHpkeKeySize) {
    return errors::SecretsRefused("its key is not one of X25519");
  }
  auto signer = chains.Verify(request.certificate_chain_pem());
  if (!signer.ok()) return Refused(signer.status());
  if ((*signer)->uri != ToUri({std::string(fleet), NodeIdentity{request.node()}}).value_or("")) {
    return errors::SecretsRefused(absl::StrCat("its certificate is that of ", (*signer)->uri));
  }
  if (!(*signer)->key.Verify(RequestText(fleet, request), request.signature())) {
    return errors::SecretsRefused("the signature does not match");
  }
  return *std::move(signer);
}

absl::StatusOr<v1::FetchSecretsResponse> SealSecrets(const SigningFiles& service_files,
                                                     std::string_view fleet,
                                                     const v1::FetchSecretsRequest& request,
                                                     const v1::SecretValues& values) {
  const Secret plain(values.SerializeAsString());
  auto message = HpkeSeal(request.key(), kInfo, AssociatedData(fleet, request), plain.view());
  if (absl::IsInvalidArgument(message.status())) return Refused(message.status());
  if (!message.ok()) return message.status();
  v1::FetchSecretsResponse response;
  response.set_encapsulated_key(std::move(message->encapsulated_key));
  response.set_sealed(std::move(message->sealed));
  ASSIGN_OR_RETURN(*response.mutable_signature(),
                   service_files.key.Sign(AnswerText(fleet, request, response)));
  response.set_certificate_chain_pem(service_files.chain_pem);
  return response;
}

absl::StatusOr<v1::SecretValues> OpenSecrets(const SecretsRequest& request, std::string_view fleet,
                                             std::span<const Certificate> roots, absl::Time now,
                                             const v1::FetchSecretsResponse& response) {
  RETURN_IF_ERROR(CheckAnswer(request.message, fleet, roots, now, response));
  const auto plain = HpkeOpen(request.key, {response.encapsulated_key(), response.sealed()}, kInfo,
                              AssociatedData(fleet, request.message));
  if (!plain.ok()) return errors::SecretUnavailable(ToStd(plain.status().message()));
  v1::SecretValues values;
  if (!values.ParseFromArray(plain->view().data(), static_cast<int>(plain->view().size()))) {
    return errors::SecretUnavailable("the content of the answer cannot be parsed");
  }
  return values;
}

}  // namespace muster
