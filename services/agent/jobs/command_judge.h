// Whether this node runs a command.
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

namespace muster {

// Who this node is, and whom it obeys.
struct CommandTrust {
  std::string folder;  // of the node: policy.yaml and command-revocations
  std::string fleet;
  std::string node;
  Certificate command_ca;
};

struct Verdict {
  // OK: it may run. Else why not: INVALID_COMMAND, COMMAND_REFUSED, OPERATOR_REVOKED,
  // TARGET_REFUSED, COMMAND_EARLY, COMMAND_EXPIRED, POLICY_REFUSED or POLICY_UNUSABLE.
  absl::Status status;
  // Somebody who may give commands signed it for this node, so that it may be remembered, and
  // refused for good.
  bool genuine = false;
  v1::Command command;  // of a genuine one
  CommandRule rule;     // of OK
};

// Thread-safe; calls may block on the disk.
class CommandJudge {
 public:
  // Reads the revocations. INVALID_ARGUMENT (INVALID_REVOCATIONS) or UNAUTHENTICATED
  // (REVOCATIONS_REFUSED) if that file was damaged or forged.
  static absl::StatusOr<std::unique_ptr<CommandJudge>> Open(CommandTrust trust);

  // In this order: signature and chain, revocation, target, time, policy.
  Verdict Judge(const v1::SignedCommand& command, const v1::JobCommand::Target& target,
                absl::Time now);

  // Keeps a list that is newer than ours; an older one is ignored. As Open.
  absl::Status TakeRevocations(const v1::CommandRevocations& list);
  int64_t revocations_version() const;

 private:
  explicit CommandJudge(CommandTrust trust);
  absl::Status CheckSigner(const Identity& signer) const ABSL_LOCKS_EXCLUDED(mutex_);

  const CommandTrust trust_;
  PolicyFile policy_;
  mutable Mutex mutex_;
  v1::CommandRevocations revocations_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_COMMAND_JUDGE_H_
