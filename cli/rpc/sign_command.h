// Signs a command as the operator.
#ifndef MUSTER_CLI_RPC_SIGN_COMMAND_H_
#define MUSTER_CLI_RPC_SIGN_COMMAND_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/context.h"
#include "services/common/identity/signed_command.h"
#include "services/common/identity/signing_key.h"

namespace muster::cli {

struct CommandForNodes {
  v1::SignedCommand command;
  std::vector<std::string> nodes;  // as the signature has them; none for all nodes
};

// Returns a new id for a job or a deployment: kJobIdSize random digits.
std::string NewCommandId();

// A new key with its signing certificate. Immutable.
class CommandSigner {
 public:
  // The aggregator issues the certificate. Errors are marked with FromService.
  static absl::StatusOr<CommandSigner> Create(const OperatorContext& context);

  // Sets the fleet, the nonce and the targets of the command, and a new job id if it has none. A
  // usage error for a command beyond the limits.
  absl::StatusOr<CommandForNodes> Sign(v1::Command command, std::vector<std::string> nodes) const;

  // Returns the content of a command that another program stored, if an operator of the fleet
  // signed it. Its certificate may have expired since. Errors as those of VerifyCommand
  // (signed_command.h).
  absl::StatusOr<VerifiedCommand> VerifyStored(const v1::SignedCommand& command) const;

 private:
  CommandSigner(std::string fleet, SigningKey key, std::string chain_pem, Certificate command_ca)
      : fleet_(std::move(fleet)),
        key_(std::move(key)),
        chain_pem_(std::move(chain_pem)),
        command_ca_(std::move(command_ca)) {}

  std::string fleet_;
  SigningKey key_;
  std::string chain_pem_;
  Certificate command_ca_;
};

// Signs with a new CommandSigner. Errors as those of both of its functions.
absl::StatusOr<CommandForNodes> SignForNodes(const OperatorContext& context, v1::Command command,
                                             std::vector<std::string> nodes);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_SIGN_COMMAND_H_
