#include "services/common/rpc/renewed_channel.h"

#include <utility>

#include "services/common/rpc/channel.h"

namespace muster {

RenewedChannel::RenewedChannel(std::string target,
                               std::shared_ptr<grpc::ChannelCredentials> credentials)
    : target_(std::move(target)), credentials_(std::move(credentials)), channel_(Make()) {}

std::shared_ptr<grpc::Channel> RenewedChannel::Get() const {
  MutexLock lock(mutex_);
  return channel_;
}

void RenewedChannel::RenewIfBroken() {
  std::shared_ptr<grpc::Channel> broken;  // destroyed without the lock
  MutexLock lock(mutex_);
  const grpc_connectivity_state state = channel_->GetState(/*try_to_connect=*/false);
  if (state == GRPC_CHANNEL_IDLE || state == GRPC_CHANNEL_READY) return;
  broken = std::exchange(channel_, Make());
}

// A shared connection would bring its back-off along.
std::shared_ptr<grpc::Channel> RenewedChannel::Make() const {
  return MakeChannel(target_, credentials_, /*own_connection=*/true);
}

}  // namespace muster
