// Decides whether this node runs a command.
#ifndef MUSTER_SERVICES_AGENT_JOBS_COMMAND_JUDGE_H_
#define MUSTER_SERVICES_AGENT_JOBS_COMMAND_JUDGE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/jobs/node_policy.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/signed_command.h"

namespace muster {

// The identity of this node, and the authority of its commands.
struct CommandTrust {
  std::string folder;  // of the node: policy.yaml and command-revocations
  std::string fleet;
  std::string node;
  Certificate command_ca;
};

struct Verdict {
  // OK if it may run, otherwise INVALID_COMMAND, COMMAND_REFUSED, OPERATOR_REVOKED, TARGET_REFUSED,
  // COMMAND_EARLY, COMMAND_EXPIRED, REVOCATIONS_DAMAGED, POLICY_REFUSED or POLICY_UNUSABLE; of a
  // deployment also INVALID_DOCUMENT, INVALID_PARAMETERS or INVALID_SECRETS.
  absl::Status status;
  // An authorised signer signed it for this node. The node stores it.
  bool genuine = false;
  v1::Command command;  // if it is genuine
  CommandRule rule;     // if the status is OK
};

// Thread-safe; calls may block on the disk.
class CommandJudge {
 public:
  // Reads the revocations. If that file is damaged or forged, every command is refused until a list
  // is received.
  static absl::StatusOr<std::unique_ptr<CommandJudge>> Open(CommandTrust trust);

  // Checks signature and chain, revocation, target, time and policy, and the documents and
  // parameters of a deployment.
  Verdict Judge(const v1::SignedCommand& command, const v1::JobCommand::Target& target,
                absl::Time now);

  // Stores a newer list, and ignores an older one. INVALID_ARGUMENT (INVALID_REVOCATIONS) or
  // UNAUTHENTICATED (REVOCATIONS_REFUSED) if it is not the list of the command authority.
  absl::Status ReceiveRevocations(const v1::CommandRevocations& list);
  int64_t revocations_version() const;

 private:
  explicit CommandJudge(CommandTrust trust);
  absl::StatusOr<VerifiedCommand> VerifyEarly(const v1::SignedCommand& command) const;
  absl::Status CheckSigner(const Identity& signer) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckRevocationsKnown() const ABSL_LOCKS_EXCLUDED(mutex_);

  const CommandTrust trust_;
  PolicyFile policy_;
  mutable Mutex mutex_;
  v1::CommandRevocations revocations_ ABSL_GUARDED_BY(mutex_);
  bool revocations_damaged_ ABSL_GUARDED_BY(mutex_) = false;  // on the disk; none received since
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_COMMAND_JUDGE_H_
