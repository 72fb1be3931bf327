#include "services/agent/jobs/command_judge.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "services/agent/jobs/deployment_rule.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/contents.h"
#include "services/common/errors/jobs.h"
#include "services/common/errors/templates.h"
#include "services/common/identity/command_revocations.h"
#include "services/common/identity/signed_command.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/templates/build_content.h"
#include "services/common/templates/files.h"
#include "services/common/templates/resolved_deployment.h"
#include "services/common/templates/workspaces.h"

namespace muster {
namespace {

constexpr size_t kMaxRevocationsFile = size_t{16} << 20;

std::string RevocationsFile(const std::string& folder) {
  return absl::StrCat(folder, "/command-revocations");
}

// Returns the name of a signer in the rules of a policy.
std::string SignerName(const Identity& signer) {
  if (const auto* user = std::get_if<UserIdentity>(&signer.name)) return user->name;
  return absl::StrCat("gateway/", std::get<ServiceIdentity>(signer.name).name);
}

CommandRequest RequestOf(const v1::Command& command, const Identity& signer) {
  CommandRequest request;
  request.action = command.action();
  request.signer = SignerName(signer);
  request.argv.assign(command.argv().begin(), command.argv().end());
  request.image = command.container().image();
  for (const v1::Command::Variable& variable : command.environment()) {
    request.variables.push_back(variable.name());
  }
  request.classes.assign(command.classes().begin(), command.classes().end());
  return request;
}

absl::Status CheckStoredBytes(const google::protobuf::RepeatedPtrField<v1::Command::File>& files,
                              const CommandRule& rule) {
  const int64_t bytes = StoredBytes(files);
  if (bytes <= rule.container.max_files) return absl::OkStatus();
  return errors::FilesTooLarge(absl::StrCat(bytes, " bytes"),
                               absl::StrCat(rule.container.max_files, " bytes"));
}

absl::StatusOr<CommandRule> RuleForBuild(const NodePolicy& policy, const v1::Command& command,
                                         CommandRequest request) {
  const v1::Command::Build& build = command.container().build();
  ASSIGN_OR_RETURN(const ResolvedBuild resolved, ResolveBuild(build));
  if (resolved.type.image != command.container().image()) {
    return errors::DeploymentImageDiffers(command.container().image(), resolved.type.image);
  }
  request.repository = build.repository();
  ASSIGN_OR_RETURN(CommandRule rule, policy.Allow(request));
  RETURN_IF_ERROR(CheckStoredBytes(build.files(), rule));
  return rule;
}

// Returns the rule of the policy that admits the command. That of a deployment has the limits of
// its documents.
absl::StatusOr<CommandRule> RuleFor(const NodePolicy& policy, const v1::Command& command,
                                    const Identity& signer) {
  CommandRequest request = RequestOf(command, signer);
  if (command.container().has_build()) return RuleForBuild(policy, command, std::move(request));
  if (!command.container().has_deployment()) return policy.Allow(request);
  ASSIGN_OR_RETURN(const auto resolved, ResolveDeployment(command.container().deployment()));
  request.action = ActionOf(resolved.type);
  request.argv = resolved.type.command;
  for (const auto& secret : command.container().deployment().secrets()) {
    request.secrets.push_back(secret.secret());
  }
  RETURN_IF_ERROR(CheckWorkspaceTarget(command));
  request.workspace = command.container().deployment().workspace().workspace();
  if (resolved.type.network != kNoNetwork) request.network = resolved.type.network;
  ASSIGN_OR_RETURN(CommandRule rule, policy.Allow(request));
  RETURN_IF_ERROR(ApplyDeployment(resolved, command.container().image(), &rule));
  RETURN_IF_ERROR(CheckStoredBytes(command.container().deployment().files(), rule));
  return rule;
}

absl::Status TargetRefused(std::string_view node, const absl::Status& why) {
  return errors::TargetRefused(node, ToStd(why.message()));
}

}  // namespace

CommandJudge::CommandJudge(CommandTrust trust)
    : trust_(std::move(trust)), policy_(absl::StrCat(trust_.folder, "/policy.yaml")) {}

absl::StatusOr<std::unique_ptr<CommandJudge>> CommandJudge::Open(CommandTrust trust) {
  std::unique_ptr<CommandJudge> judge(new CommandJudge(std::move(trust)));
  const std::string path = RevocationsFile(judge->trust_.folder);
  const auto text = ReadFileBounded(path, kMaxRevocationsFile);
  if (absl::IsNotFound(text.status())) return judge;
  if (!text.ok()) return text.status();
  v1::CommandRevocations list;
  const bool parsed = list.ParseFromString(*text);
  const absl::Status status =
      parsed ? VerifyCommandRevocations(list, judge->trust_.fleet, judge->trust_.command_ca)
             : errors::RevocationsDamaged(judge->trust_.node);
  MutexLock lock(judge->mutex_);
  if (status.ok()) {
    judge->revocations_ = std::move(list);
  } else {
    judge->revocations_damaged_ = true;
    Log(LogLevel::kWarning,
        "the list of revoked signers is damaged: commands are refused until the relay sends it",
        {{"path", path}, {"error", status}});
  }
  return judge;
}

Verdict CommandJudge::Judge(const v1::SignedCommand& command, const v1::JobCommand::Target& target,
                            absl::Time now) {
  Verdict verdict;
  auto verified = VerifyCommand(command, trust_.command_ca, trust_.fleet, now);
  verdict.status = verified.status();
  const bool early = ReasonOf(verdict.status) == "COMMAND_EARLY";
  // The other checks apply to the time at which it may start.
  if (early) verified = VerifyEarly(command);
  if (!verified.ok()) return verdict;
  absl::Status meant = CheckSigner(verified->signer);
  if (meant.ok()) {
    meant = CheckTarget(verified->command, trust_.node, target);
    if (!meant.ok()) meant = TargetRefused(trust_.node, meant);
  }
  if (!meant.ok()) {
    verdict.status = meant;
    return verdict;
  }
  // The refusal of an early command is final: it must not run later. So is that of a command whose
  // signer may be revoked.
  verdict.genuine = true;
  verdict.command = std::move(verified->command);
  if (early) return verdict;
  verdict.status = CheckRevocationsKnown();
  if (!verdict.status.ok()) return verdict;
  const auto policy = policy_.Current();
  verdict.status = policy.status();
  if (!policy.ok()) return verdict;
  auto rule = RuleFor(**policy, verdict.command, verified->signer);
  verdict.status = rule.status();
  if (rule.ok()) verdict.rule = *std::move(rule);
  return verdict;
}

absl::StatusOr<VerifiedCommand> CommandJudge::VerifyEarly(const v1::SignedCommand& command) const {
  v1::Command early;
  if (!early.ParseFromString(command.command())) return errors::CommandOfOtherJob();
  return VerifyCommand(command, trust_.command_ca, trust_.fleet, FromProto(early.not_before()));
}

absl::Status CommandJudge::CheckSigner(const Identity& signer) const {
  MutexLock lock(mutex_);
  if (!IsRevoked(revocations_, signer)) return absl::OkStatus();
  return errors::SignerOfCommandRevoked(SignerName(signer));
}

absl::Status CommandJudge::CheckRevocationsKnown() const {
  MutexLock lock(mutex_);
  return revocations_damaged_ ? errors::RevocationsDamaged(trust_.node) : absl::OkStatus();
}

absl::Status CommandJudge::ReceiveRevocations(const v1::CommandRevocations& list) {
  RETURN_IF_ERROR(VerifyCommandRevocations(list, trust_.fleet, trust_.command_ca));
  MutexLock lock(mutex_);
  if (list.version() <= revocations_.version()) return absl::OkStatus();
  // In effect even if it cannot be stored.
  revocations_ = list;
  revocations_damaged_ = false;
  return WriteFileDurably(PosixFileOps(), RevocationsFile(trust_.folder), list.SerializeAsString());
}

int64_t CommandJudge::revocations_version() const {
  MutexLock lock(mutex_);
  return revocations_.version();
}

}  // namespace muster
