// A channel to a service that has several addresses, for processes that live long.
#ifndef MUSTER_SERVICES_COMMON_RPC_SERVICE_CHANNEL_H_
#define MUSTER_SERVICES_COMMON_RPC_SERVICE_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/types/span.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/text_values.h"
#include "services/common/base/timers.h"
#include "services/common/rpc/channel_target.h"

namespace muster {

// Returns the channel to a service. Get it for each call: it changes.
using GetChannel = std::function<std::shared_ptr<grpc::Channel>()>;

// The channel to the first of several targets that answers. gRPC itself resolves a single DNS name
// again when it cannot connect. Several names it cannot resolve, so this object does: while no
// target can be reached, it resolves the names every ten seconds and replaces the channel if their
// addresses have changed. Thread-safe.
class ServiceChannel {
 public:
  // Blocks until the names are resolved. Later `resolve` is called on `executor`. `timers` and
  // `executor` outlive this object.
  ServiceChannel(absl::Span<const HostPort> targets,
                 std::shared_ptr<grpc::ChannelCredentials> credentials, TimerService& timers,
                 Executor& executor, ResolveName resolve = ResolveBySystem);

  // Get it for each call. An earlier channel stays usable while it is referenced.
  std::shared_ptr<grpc::Channel> Get() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Check() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::vector<HostPort> targets_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  const ResolveName resolve_;
  std::string resolved_;  // of the constructor, then of Check
  mutable Mutex mutex_;
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mutex_);
  ScheduledTask check_;  // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_SERVICE_CHANNEL_H_
