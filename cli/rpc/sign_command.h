// Signs a command as the operator.
#ifndef MUSTER_CLI_RPC_SIGN_COMMAND_H_
#define MUSTER_CLI_RPC_SIGN_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/identity/context.h"

namespace muster::cli {

struct CommandForNodes {
  v1::SignedCommand command;
  std::vector<std::string> nodes;  // as the signature has them; none for all nodes
};

// Returns a new id for a job or a deployment: kJobIdSize random digits.
std::string NewCommandId();

// Signs with a new key, whose signing certificate the aggregator issues. Sets the fleet, the nonce
// and the targets of the command, and a new job id if it has none. Errors are marked with
// FromService, or are usage errors for a command beyond the limits.
absl::StatusOr<CommandForNodes> SignForNodes(const OperatorContext& context, v1::Command command,
                                             std::vector<std::string> nodes);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_SIGN_COMMAND_H_
