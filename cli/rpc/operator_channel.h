// Channels to services with the identity of an operator.
#ifndef MUSTER_CLI_RPC_OPERATOR_CHANNEL_H_
#define MUSTER_CLI_RPC_OPERATOR_CHANNEL_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/identity/context.h"
#include "services/common/identity/identity.h"

namespace muster::cli {

// Returns a channel to the servers of this role at `targets`, which the context names. The
// only accepted relay is the root relay.
std::shared_ptr<grpc::Channel> MakeOperatorChannel(const OperatorContext& context,
                                                   const std::vector<std::string>& targets,
                                                   ServiceRole role);

// Returns a channel to the jobs service. A usage error if the context names none.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenJobsChannel(const OperatorContext& context);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_OPERATOR_CHANNEL_H_
