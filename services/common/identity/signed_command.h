// Signing of commands by operators and verification by nodes (proto/muster/v1/jobs.proto).
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_SIGNED_COMMAND_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_SIGNED_COMMAND_H_

#include <cstddef>
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

// The actions, which the policy of a node refers to.
inline constexpr std::string_view kExecAction = "exec";
inline constexpr std::string_view kRudderAction = "rudder";
// A command in a container. An agent that knows no containers refuses the action: it would run the
// command on the node itself.
inline constexpr std::string_view kContainerAction = "container";
// A deployment in a container. An agent that knows no deployments refuses the action: the container
// would lack its parameters.
inline constexpr std::string_view kDeploymentAction = "deployment";
// The build of an image. An agent that knows no builds refuses the action.
inline constexpr std::string_view kBuildAction = "build";

// The largest serialised command, in bytes.
inline constexpr size_t kMaxCommand = size_t{128} << 10;

// The limits of a deployment, in bytes.
inline constexpr size_t kMaxDocument = size_t{24} << 10;    // of its type or its template, as JSON
inline constexpr size_t kMaxParameters = size_t{32} << 10;  // that it sets, as JSON

// The tolerated clock difference between signer and node.
inline constexpr absl::Duration kCommandClockSlack = absl::Minutes(5);

// The hexadecimal digits of a job's id.
inline constexpr size_t kJobIdSize = 32;

// Returns true for kJobIdSize lower-case hexadecimal digits.
bool IsJobId(std::string_view id);

struct VerifiedCommand {
  v1::Command command;
  Identity signer;     // an operator or a gateway
  std::string serial;  // of the signing certificate, lower-case hex
};

// Checks the limits of jobs.proto. Fails with INVALID_ARGUMENT (INVALID_COMMAND); the message names
// the field.
absl::Status CheckCommand(const v1::Command& command);

// Serialises and signs the command. `chain_pem`: the certificate that the command authority issued
// for `key`. Fails as CheckCommand does.
absl::StatusOr<v1::SignedCommand> SignCommand(const v1::Command& command, const SigningKey& key,
                                              std::string_view chain_pem);

// Returns the parsed command if the key of its first certificate signed exactly these bytes, for
// this fleet, and the command is within the limits. For a service that does not know the command
// authority: does not verify the certificate, nor the times. Fails with INVALID_ARGUMENT
// (INVALID_COMMAND) or PERMISSION_DENIED (COMMAND_REFUSED).
absl::StatusOr<v1::Command> CheckSignedBytes(const v1::SignedCommand& signed_command,
                                             std::string_view fleet);

// Verifies that an operator or a gateway of the fleet signed exactly these bytes, with a
// certificate of the fleet's command authority that is valid at `now`; that the command is within
// the limits; and that `now` is within the command's times (with a tolerance of
// kCommandClockSlack). A gateway may sign only the action "rudder". Does not check targets,
// revocation, replay, or the node's policy. Fails with INVALID_ARGUMENT (INVALID_COMMAND),
// PERMISSION_DENIED (COMMAND_REFUSED) or FAILED_PRECONDITION (COMMAND_EARLY, COMMAND_EXPIRED).
absl::StatusOr<VerifiedCommand> VerifyCommand(const v1::SignedCommand& signed_command,
                                              const Certificate& command_ca, std::string_view fleet,
                                              absl::Time now);

// Checks that the command is for this node: for all nodes, or `target` proves that the node is a
// signed target. Fails with PERMISSION_DENIED (COMMAND_REFUSED).
absl::Status CheckTarget(const v1::Command& command, std::string_view node,
                         const v1::JobCommand::Target& target);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_SIGNED_COMMAND_H_
