// A channel that connects only when its user calls.
#ifndef MUSTER_SERVICES_COMMON_RPC_RENEWED_CHANNEL_H_
#define MUSTER_SERVICES_COMMON_RPC_RENEWED_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "services/common/base/mutex.h"

namespace muster {

// For a caller that repeats failed calls with a back-off. gRPC's channel has a back-off as well,
// and rejects each call until it ends, so the two waits would add up. Here the channel is replaced
// after a failure to connect: nothing connects during the caller's wait, and the next call connects
// immediately. So the caller's jitter also spreads the connections of many clients
// (docs/decisions/0026). Thread-safe.
class RenewedChannel {
 public:
  // `target`: "host:port".
  RenewedChannel(std::string target, std::shared_ptr<grpc::ChannelCredentials> credentials);

  // Returns the channel for the next call.
  std::shared_ptr<grpc::Channel> Get() const;

  // Called after a failed call, before the wait. Replaces the channel if it could not connect.
  void RenewIfBroken();

 private:
  std::shared_ptr<grpc::Channel> Make() const;

  const std::string target_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  mutable Mutex mutex_;
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_RENEWED_CHANNEL_H_
