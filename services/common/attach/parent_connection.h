// Attachments over gRPC.
#ifndef MUSTER_SERVICES_COMMON_ATTACH_PARENT_CONNECTION_H_
#define MUSTER_SERVICES_COMMON_ATTACH_PARENT_CONNECTION_H_

#include <grpcpp/channel.h>

#include <memory>

#include "services/common/attach/attach_delegate.h"
#include "services/common/attach/parent_stream.h"
#include "services/common/base/clock.h"

namespace muster {

// Returns a channel with a separate connection to `target`, one of the options' targets.
std::shared_ptr<grpc::Channel> ConnectToParent(const AttachClientOptions& options,
                                               const HostPort& target);

// Opens streams on `channel`.
OpenParentStream OpenerOn(std::shared_ptr<grpc::Channel> channel);

// Signs with the newest key and certificate in the options' folder. `options` and `clock` outlive
// the function.
SignStatement SignerOf(const AttachClientOptions& options, const Clock& clock);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ATTACH_PARENT_CONNECTION_H_
