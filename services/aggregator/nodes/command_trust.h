// Issues and revokes the certificates that sign commands.
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

// Thread-safe. Methods may wait for the disk and fail as IdentityService does.
class CommandTrust {
 public:
  CommandTrust(CommandAuthority authority, StateStore& store, const Clock& clock)
      : authority_(std::move(authority)), store_(store), clock_(clock) {}

  std::string CaPem() const { return authority_.certificate().ToPem(); }

  // Issues a signing certificate for an operator or a gateway, and records it in the audit log.
  absl::StatusOr<Certificate> Issue(const Identity& signer, const std::string& public_key_pem);

  // Returns the signed list of all revoked operators and gateways. The version is their number plus
  // one: revocations are permanent.
  absl::StatusOr<v1::CommandRevocations> Revocations();

 private:
  const CommandAuthority authority_;
  StateStore& store_;
  const Clock& clock_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_NODES_COMMAND_TRUST_H_
