#include "services/common/rpc/service_channel.h"

#include <utility>

#include "services/common/base/log.h"
#include "services/common/rpc/channel.h"

namespace muster {
namespace {

constexpr absl::Duration kCheck = absl::Seconds(10);

}  // namespace

ServiceChannel::ServiceChannel(absl::Span<const HostPort> targets,
                               std::shared_ptr<grpc::ChannelCredentials> credentials,
                               TimerService& timers, Executor& executor, ResolveName resolve)
    : targets_(targets.begin(), targets.end()),
      credentials_(std::move(credentials)),
      resolve_(std::move(resolve)),
      resolved_(ChannelTarget(targets_, resolve_)),
      channel_(MakeResolvedChannel(resolved_, credentials_)),
      check_(timers, executor, [this] { Check(); }) {
  if (NeedsResolution(targets_)) check_.RunAfter(kCheck);
}

std::shared_ptr<grpc::Channel> ServiceChannel::Get() const {
  MutexLock lock(mutex_);
  return channel_;
}

void ServiceChannel::Check() {
  check_.RunAfter(kCheck);
  // Once all targets have failed, a channel stays in this state until one of them answers.
  if (Get()->GetState(false) != GRPC_CHANNEL_TRANSIENT_FAILURE) return;
  std::string resolved = ChannelTarget(targets_, resolve_);
  if (resolved == resolved_) return;
  Log(LogLevel::kInfo, "the addresses of a service have changed",
      {{"before", resolved_}, {"now", resolved}});
  resolved_ = std::move(resolved);
  auto channel = MakeResolvedChannel(resolved_, credentials_);
  MutexLock lock(mutex_);
  channel_.swap(channel);
}

}  // namespace muster
