#include "cli/rpc/jobs_channel.h"

#include <string>

#include "cli/exit_code.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/channel_target.h"

namespace muster::cli {

std::shared_ptr<grpc::Channel> MakeJobsChannel(const OperatorContext& context) {
  const ChannelIdentity identity = {context.fleet, context.fleet_ca_pem,
                                    context.certificate_chain_pem,
                                    std::string(context.private_key_pem.view()), ""};
  return MakeChannel(ParseTargets(context.jobs_targets),
                     MakeChannelCredentials(identity, {ServiceRole::kJobs}));
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenJobsChannel(const OperatorContext& context) {
  if (context.jobs_targets.empty()) {
    return UsageError(
        "the context file names no jobs service",
        "Create a new context on the machine of the services: muster up, or muster operator add.");
  }
  return MakeJobsChannel(context);
}

}  // namespace muster::cli
