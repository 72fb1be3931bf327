// Who may sign commands for nodes, and who may no more.
#ifndef MUSTER_SERVICES_AGGREGATOR_NODES_COMMAND_TRUST_H_
#define MUSTER_SERVICES_AGGREGATOR_NODES_COMMAND_TRUST_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/clock.h"
#include "services/common/identity/command_authority.h"
#include "services/common/store/state_store.h"

namespace muster {

// Thread-safe. Its methods may wait for the disk; their errors are those of IdentityService.
class CommandTrust {
 public:
  CommandTrust(CommandAuthority authority, StateStore& store, const Clock& clock)
      : authority_(std::move(authority)), store_(store), clock_(clock) {}

  std::string CaPem() const { return authority_.certificate().ToPem(); }

  // A signing certificate for an operator or a gateway; the audit log has it.
  absl::StatusOr<Certificate> Issue(const Identity& signer, const std::string& public_key_pem);

  // Every revoked operator and gateway, signed. The version counts them, from 1: what is revoked
  // stays so.
  absl::StatusOr<v1::CommandRevocations> Revocations();

 private:
  const CommandAuthority authority_;
  StateStore& store_;
  const Clock& clock_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_NODES_COMMAND_TRUST_H_
