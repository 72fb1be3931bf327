#include "cli/rpc/sign_command.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/exit_code.h"
#include "cli/rpc/operator_channel.h"
#include "cli/rpc/unary_call.h"
#include "muster/v1/identities.grpc.pb.h"
#include "services/common/base/random_id.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/target_set.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

absl::StatusOr<v1::CommandCertificate> IssueCertificate(const OperatorContext& context,
                                                        const SigningKey& key) {
  ASSIGN_OR_RETURN(const auto public_pem, key.public_key().ToPem());
  v1::IssueCommandCertificateRequest request;
  request.set_public_key_pem(public_pem);
  const auto aggregator = v1::IdentityService::NewStub(
      MakeOperatorChannel(context, context.aggregator_targets, ServiceRole::kAggregator));
  return CallUnary(
      *aggregator, &v1::IdentityService::Stub::IssueCommandCertificate, request,
      absl::StrCat("the aggregator at ", absl::StrJoin(context.aggregator_targets, ", ")));
}

}  // namespace

std::string NewCommandId() { return RandomHex(kJobIdSize / 2); }

absl::StatusOr<CommandSigner> CommandSigner::Create(const OperatorContext& context) {
  ASSIGN_OR_RETURN(auto key, SigningKey::Generate());
  ASSIGN_OR_RETURN(const auto certificate, IssueCertificate(context, key));
  ASSIGN_OR_RETURN(auto command_ca, Certificate::FromPem(certificate.command_ca_pem()));
  return CommandSigner(context.fleet, std::move(key), certificate.certificate_chain_pem(),
                       std::move(command_ca));
}

absl::StatusOr<CommandForNodes> CommandSigner::Sign(v1::Command command,
                                                    std::vector<std::string> nodes) const {
  command.set_fleet(fleet_);
  if (command.job().empty()) command.set_job(NewCommandId());
  command.set_nonce(absl::HexStringToBytes(NewCommandId()));
  CommandForNodes result;
  if (!command.targets().all()) {
    const TargetSet targets(std::move(nodes));
    command.mutable_targets()->set_nodes_sha256(targets.root());
    command.mutable_targets()->set_count(static_cast<int64_t>(targets.size()));
    result.nodes.assign(targets.names().begin(), targets.names().end());
  }
  auto signed_command = SignCommand(command, key_, chain_pem_);
  if (absl::IsInvalidArgument(signed_command.status())) {
    return AsUsageError(signed_command.status());
  }
  RETURN_IF_ERROR(signed_command.status());
  result.command = *std::move(signed_command);
  return result;
}

// Verifies it at the first time at which it was valid.
absl::StatusOr<VerifiedCommand> CommandSigner::VerifyStored(
    const v1::SignedCommand& command) const {
  ASSIGN_OR_RETURN(const v1::Command content, CheckSignedBytes(command, fleet_));
  ASSIGN_OR_RETURN(const auto leaf, Certificate::FromPem(command.certificate_chain_pem()));
  return VerifyCommand(command, command_ca_, fleet_,
                       std::max(FromProto(content.not_before()), leaf.NotBefore()));
}

absl::StatusOr<CommandForNodes> SignForNodes(const OperatorContext& context, v1::Command command,
                                             std::vector<std::string> nodes) {
  ASSIGN_OR_RETURN(const auto signer, CommandSigner::Create(context));
  return signer.Sign(std::move(command), std::move(nodes));
}

}  // namespace muster::cli
