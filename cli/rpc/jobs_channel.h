// The channel to the jobs service.
#ifndef MUSTER_CLI_RPC_JOBS_CHANNEL_H_
#define MUSTER_CLI_RPC_JOBS_CHANNEL_H_

#include <grpcpp/channel.h>

#include <memory>

#include "absl/status/statusor.h"
#include "services/common/identity/context.h"

namespace muster::cli {

// Returns a channel with the identity of the operator. The context names a jobs service.
std::shared_ptr<grpc::Channel> MakeJobsChannel(const OperatorContext& context);

// The same. A usage error if the context names no jobs service.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenJobsChannel(const OperatorContext& context);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_JOBS_CHANNEL_H_
