#include "cli/rpc/operator_channel.h"

#include "cli/exit_code.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/channel_target.h"

namespace muster::cli {

std::shared_ptr<grpc::Channel> MakeOperatorChannel(const OperatorContext& context,
                                                   const std::vector<std::string>& targets,
                                                   ServiceRole role) {
  const ChannelIdentity identity = {
      .fleet = context.fleet,
      .fleet_ca_pem = context.fleet_ca_pem,
      .certificate_chain_pem = context.certificate_chain_pem,
      .private_key_pem = std::string(context.private_key_pem.view()),
      .relay = role == ServiceRole::kRelay ? std::string(kRootRelay) : "",
  };
  return MakeChannel(ParseTargets(targets), MakeChannelCredentials(identity, {role}));
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenJobsChannel(const OperatorContext& context) {
  if (context.jobs_targets.empty()) {
    return UsageError(
        "the context file names no jobs service",
        "Create a new context on the machine of the services: muster up, or muster operator add.");
  }
  return MakeOperatorChannel(context, context.jobs_targets, ServiceRole::kJobs);
}

}  // namespace muster::cli
