// Commands as operators sign them and nodes check them (proto/muster/v1/jobs.proto).
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_SIGNED_COMMAND_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_SIGNED_COMMAND_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/signing_key.h"

namespace muster {

// What the policy of a node decides by.
inline constexpr std::string_view kExecAction = "exec";
inline constexpr std::string_view kRudderAction = "rudder";

// How far the clocks of the one who signs and the node may be apart.
inline constexpr absl::Duration kCommandClockSlack = absl::Minutes(5);

struct VerifiedCommand {
  v1::Command command;
  Identity signer;     // an operator or a gateway
  std::string serial;  // of its signing certificate, lower-case hex
};

// Whether the command keeps the bounds of jobs.proto. INVALID_ARGUMENT, reason INVALID_COMMAND,
// that names the field.
absl::Status CheckCommand(const v1::Command& command);

// Serialises and signs. `chain_pem`: the certificate that the command authority issued for `key`.
// INVALID_COMMAND as above.
absl::StatusOr<v1::SignedCommand> SignCommand(const v1::Command& command, const SigningKey& key,
                                              std::string_view chain_pem);

// Whether an operator or a gateway of the fleet, with a certificate by the fleet's command
// authority that is valid at `now`, signed exactly these bytes, they keep the bounds, and `now` is
// between the command's times (give or take kCommandClockSlack). A gateway signs the action
// "rudder" alone. INVALID_ARGUMENT (INVALID_COMMAND), PERMISSION_DENIED (COMMAND_REFUSED),
// FAILED_PRECONDITION (COMMAND_EARLY, COMMAND_EXPIRED). Not asked here: targets, revocation,
// replay, a node's policy.
absl::StatusOr<VerifiedCommand> VerifyCommand(const v1::SignedCommand& signed_command,
                                              const Certificate& command_ca, std::string_view fleet,
                                              absl::Time now);

// Whether the command is for this node: for all, or `target` proves its name among the signed ones.
// PERMISSION_DENIED (COMMAND_REFUSED).
absl::Status CheckTarget(const v1::Command& command, std::string_view node,
                         const v1::JobCommand::Target& target);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_SIGNED_COMMAND_H_
