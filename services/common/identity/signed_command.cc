#include "services/common/identity/signed_command.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/image_reference.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/target_set.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr size_t kMaxChainPem = 16 * 1024;
constexpr size_t kMaxArgv = 64 * 1024;
constexpr int kMaxArguments = 1000;
constexpr int64_t kMaxTargets = 50'000;
constexpr size_t kNonceSize = 16;
constexpr size_t kMaxVariableName = 128;
constexpr size_t kMaxClass = 1024;
constexpr size_t kMaxActionOfType = 253;
constexpr int64_t kMaxSeconds = 253'402'300'800;  // the year 10000

// Returns "muster-command-v1\n" and the bytes.
std::string SignedText(std::string_view command) {
  return absl::StrCat("muster-command-v1\n", ToAbsl(command));
}

bool HasNul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

bool IsWord(std::string_view text, size_t limit) {
  return !text.empty() && text.size() <= limit && std::ranges::all_of(text, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
}

absl::Status CheckTargets(const v1::Command::Targets& targets) {
  if (targets.all()) {
    if (targets.nodes_sha256().empty() && targets.count() == 0) return absl::OkStatus();
    return errors::InvalidCommand("targets are all, or named, not both");
  }
  if (targets.count() > kMaxTargets) {
    return errors::TooManyTargets(targets.count(), kMaxTargets);
  }
  if (targets.nodes_sha256().size() != kSha256Size || targets.count() < 1) {
    return errors::InvalidCommand("targets are all, or named nodes with their digest");
  }
  return absl::OkStatus();
}

absl::Status CheckArgv(const v1::Command& command) {
  if (command.argv().empty() && command.action() == kExecAction) {
    return errors::InvalidCommand("argv has no program");
  }
  size_t bytes = 0;
  for (const std::string& argument : command.argv()) {
    if (HasNul(argument)) return errors::InvalidCommand("argv has a NUL byte");
    bytes += argument.size() + 1;
  }
  if (bytes > kMaxArgv || command.argv_size() > kMaxArguments) {
    return errors::InvalidCommand("argv has more than 64 KiB or 1000 arguments");
  }
  if (!command.argv().empty() && command.argv(0).empty())
    return errors::InvalidCommand("the program is empty");
  return absl::OkStatus();
}

// The node reads the documents and the parameters: their content is not checked here.
absl::Status CheckDeployment(const v1::Command& command) {
  const v1::Command::Deployment& deployment = command.container().deployment();
  if (!IsJobId(deployment.deployment())) {
    return errors::InvalidCommand("the id of the deployment is not 32 lower-case hex digits");
  }
  if (deployment.action().empty() || deployment.action().size() > kMaxActionOfType) {
    return errors::InvalidCommand("the action of the deployment is not 1 to 253 characters");
  }
  if (!command.argv().empty() || !command.environment().empty()) {
    return errors::InvalidCommand("a deployment has no argv and no environment");
  }
  if (deployment.type_document().empty()) {
    return errors::InvalidCommand("the deployment has no type");
  }
  if (deployment.type_document().size() > kMaxDocument ||
      deployment.template_document().size() > kMaxDocument) {
    return errors::InvalidCommand("a document of the deployment is larger than 24 KiB");
  }
  if (deployment.parameters().size() > kMaxParameters) {
    return errors::InvalidCommand("the parameters of the deployment are larger than 32 KiB");
  }
  return absl::OkStatus();
}

// The node and the jobs service read the documents, the files and the source (build_content.h).
absl::Status CheckBuild(const v1::Command& command) {
  const v1::Command::Build& build = command.container().build();
  if (!IsJobId(build.build())) {
    return errors::InvalidCommand("the id of the build is not 32 lower-case hex digits");
  }
  if (!command.argv().empty() || !command.environment().empty()) {
    return errors::InvalidCommand("a build has no argv and no environment");
  }
  if (command.targets().all() || command.targets().count() != 1) {
    return errors::InvalidCommand("a build is for one node");
  }
  return absl::OkStatus();
}

absl::Status CheckAction(const v1::Command& command) {
  const std::string& action = command.action();
  const bool in_container =
      action == kContainerAction || action == kDeploymentAction || action == kBuildAction;
  if (action != kExecAction && action != kRudderAction && !in_container) {
    return errors::InvalidCommand(
        "action is not \"exec\", \"rudder\", \"container\", \"deployment\" or \"build\"");
  }
  if (command.has_container() != in_container) {
    return errors::InvalidCommand(
        "container is set exactly with the actions \"container\", \"deployment\" and \"build\"");
  }
  if (command.container().has_deployment() != (action == kDeploymentAction)) {
    return errors::InvalidCommand("deployment is set exactly with the action \"deployment\"");
  }
  if (command.container().has_build() != (action == kBuildAction)) {
    return errors::InvalidCommand("build is set exactly with the action \"build\"");
  }
  if (command.container().has_deployment()) RETURN_IF_ERROR(CheckDeployment(command));
  if (command.container().has_build()) RETURN_IF_ERROR(CheckBuild(command));
  if (!command.has_container()) return absl::OkStatus();
  if (!IsImageByContent(command.container().image())) {
    return errors::InvalidCommand("the image is neither NAME@sha256:DIGEST nor sha256:ID");
  }
  if (!command.classes().empty()) return errors::InvalidCommand("a container has no classes");
  return absl::OkStatus();
}

absl::Status CheckWords(const v1::Command& command) {
  const std::string* before = nullptr;
  for (const v1::Command::Variable& variable : command.environment()) {
    if (!IsWord(variable.name(), kMaxVariableName) ||
        absl::ascii_isdigit(static_cast<unsigned char>(variable.name().front()))) {
      return errors::InvalidCommand(
          "environment has a name that is not [A-Za-z_][A-Za-z0-9_]{0,127}");
    }
    if (HasNul(variable.value())) return errors::InvalidCommand("environment has a NUL byte");
    if (before != nullptr && *before >= variable.name()) {
      return errors::InvalidCommand("environment is not sorted by name, each once");
    }
    before = &variable.name();
  }
  for (const std::string& name : command.classes()) {
    if (!IsWord(name, kMaxClass) || name.front() == '_') {
      return errors::InvalidCommand(
          "classes has an entry that is not [A-Za-z0-9][A-Za-z0-9_]{0,1023}");
    }
  }
  return absl::OkStatus();
}

template <class T>
bool InRange(const T& value) {
  return value.seconds() > 0 && value.seconds() < kMaxSeconds && value.nanos() >= 0 &&
         value.nanos() < 1'000'000'000;
}

absl::Status CheckTimes(const v1::Command& command) {
  if (!InRange(command.not_before()) || !InRange(command.not_after()) ||
      FromProto(command.not_before()) >= FromProto(command.not_after())) {
    return errors::InvalidCommand("not_before is not before not_after");
  }
  const auto& limit = command.time_limit();
  if (limit.seconds() < 0 || limit.seconds() >= kMaxSeconds || limit.nanos() < 0 ||
      limit.nanos() >= 1'000'000'000 || (limit.seconds() == 0 && limit.nanos() == 0)) {
    return errors::InvalidCommand("time_limit is not above 0");
  }
  return absl::OkStatus();
}

absl::Status CheckNow(const v1::Command& command, absl::Time now) {
  const absl::Time begin = FromProto(command.not_before());
  const absl::Time end = FromProto(command.not_after());
  if (now < begin - kCommandClockSlack) return errors::CommandEarly(begin);
  if (now > end + kCommandClockSlack) return errors::CommandExpired(end);
  return absl::OkStatus();
}

// Returns the signer, if the certificate is one for commands of this fleet.
absl::StatusOr<Identity> ReadSigner(const std::vector<Certificate>& chain,
                                    const Certificate& command_ca, std::string_view fleet,
                                    absl::Time now) {
  const std::array<Certificate, 1> roots = {command_ca};
  const absl::Status trusted =
      VerifyChain(chain.front(), std::span(chain).subspan(1), roots, Usage::kClient, now);
  if (!trusted.ok()) return errors::CommandNotAccepted(ToStd(trusted.message()));
  const auto uri = chain.front().Uri();
  if (!uri.ok()) return errors::CommandNotAccepted(ToStd(uri.status().message()));
  auto signer = ParseIdentity(*uri, fleet);
  if (!signer.ok()) return errors::CommandNotAccepted(ToStd(signer.status().message()));
  if (RoleOf(*signer) != Role::kOperator && RoleOf(*signer) != Role::kGateway) {
    return errors::CommandNotAccepted(absl::StrCat(*uri, " may not sign commands"));
  }
  return signer;
}

absl::StatusOr<std::vector<Certificate>> ReadChain(const v1::SignedCommand& signed_command) {
  if (signed_command.command().size() > kMaxCommand ||
      signed_command.certificate_chain_pem().size() > kMaxChainPem) {
    return errors::InvalidCommand("it is larger than 128 KiB, or its certificates than 16 KiB");
  }
  auto chain = ParseChain(signed_command.certificate_chain_pem());
  if (!chain.ok()) return errors::CommandNotAccepted(ToStd(chain.status().message()));
  return chain;
}

absl::StatusOr<v1::Command> ReadSignedBy(const Certificate& signer,
                                         const v1::SignedCommand& signed_command,
                                         std::string_view fleet) {
  const auto key = SigningPublicKey::Of(signer);
  if (!key.ok()) return errors::CommandNotAccepted(ToStd(key.status().message()));
  if (!key->Verify(SignedText(signed_command.command()), signed_command.signature())) {
    return errors::CommandNotAccepted("the signature does not match");
  }
  v1::Command command;
  if (!command.ParseFromString(signed_command.command())) {
    return errors::InvalidCommand("it cannot be parsed");
  }
  RETURN_IF_ERROR(CheckCommand(command));
  if (command.fleet() != fleet) return errors::CommandNotAccepted("it is for another fleet");
  return command;
}

}  // namespace

bool IsJobId(std::string_view id) {
  return id.size() == kJobIdSize && std::ranges::all_of(id, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

absl::Status CheckCommand(const v1::Command& command) {
  if (absl::Status s = CheckFleet(command.fleet()); !s.ok())
    return errors::InvalidCommand(ToStd(s.message()));
  if (!IsJobId(command.job())) return errors::InvalidCommand("job is not 32 lower-case hex digits");
  RETURN_IF_ERROR(CheckTargets(command.targets()));
  RETURN_IF_ERROR(CheckAction(command));
  RETURN_IF_ERROR(CheckArgv(command));
  RETURN_IF_ERROR(CheckWords(command));
  RETURN_IF_ERROR(CheckTimes(command));
  if (command.nonce().size() != kNonceSize) return errors::InvalidCommand("nonce is not 16 bytes");
  if (command.ByteSizeLong() > kMaxCommand)
    return errors::InvalidCommand("it is larger than 128 KiB");
  return absl::OkStatus();
}

absl::StatusOr<v1::SignedCommand> SignCommand(const v1::Command& command, const SigningKey& key,
                                              std::string_view chain_pem) {
  RETURN_IF_ERROR(CheckCommand(command));
  v1::SignedCommand result;
  result.set_command(command.SerializeAsString());
  ASSIGN_OR_RETURN(auto signature, key.Sign(SignedText(result.command())));
  result.set_signature(std::move(signature));
  result.set_certificate_chain_pem(std::string(chain_pem));
  return result;
}

absl::StatusOr<v1::Command> CheckSignedBytes(const v1::SignedCommand& signed_command,
                                             std::string_view fleet) {
  ASSIGN_OR_RETURN(const auto chain, ReadChain(signed_command));
  return ReadSignedBy(chain.front(), signed_command, fleet);
}

absl::StatusOr<VerifiedCommand> VerifyCommand(const v1::SignedCommand& signed_command,
                                              const Certificate& command_ca, std::string_view fleet,
                                              absl::Time now) {
  ASSIGN_OR_RETURN(const auto chain, ReadChain(signed_command));
  ASSIGN_OR_RETURN(auto signer, ReadSigner(chain, command_ca, fleet, now));
  VerifiedCommand verified;
  ASSIGN_OR_RETURN(verified.command, ReadSignedBy(chain.front(), signed_command, fleet));
  if (RoleOf(signer) == Role::kGateway && verified.command.action() != kRudderAction) {
    return errors::CommandNotAccepted("a gateway may sign only the action \"rudder\"");
  }
  RETURN_IF_ERROR(CheckNow(verified.command, now));
  verified.signer = std::move(signer);
  verified.serial = chain.front().Serial();
  return verified;
}

absl::Status CheckTarget(const v1::Command& command, std::string_view node,
                         const v1::JobCommand::Target& target) {
  if (target.node() != node) return errors::CommandNotAccepted("it was sent for another node");
  if (command.targets().all()) return absl::OkStatus();
  const std::vector<std::string> proof(target.proof().begin(), target.proof().end());
  if (!VerifyTarget(node, target.index(), command.targets().count(), proof,
                    command.targets().nodes_sha256())) {
    return errors::CommandNotAccepted("this node is not a signed target");
  }
  return absl::OkStatus();
}

}  // namespace muster
