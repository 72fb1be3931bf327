// The stream with the heartbeats of all senders of this relay.
#ifndef MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_UPSTREAM_HEARTBEATS_H_
#define MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_UPSTREAM_HEARTBEATS_H_

#include <memory>

#include "absl/time/time.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/relay/proxy/heartbeats/heartbeat_hub.h"
#include "services/relay/upstream/upstream.h"

namespace grpc {
class Channel;
}

namespace muster {

// Keeps a stream open to the status service, or to the parent, while there is an upstream channel.
// Opens it again with back-off when it has ended, or when the channel has changed. Thread-safe.
class UpstreamHeartbeats {
 public:
  // Opens the first stream soon. All of them outlive this object; `executor` runs short tasks.
  UpstreamHeartbeats(HeartbeatHub& hub, Upstream& upstream, const Clock& clock,
                     TimerService& timers, Executor& executor);

  // Cancels the stream and waits for its end.
  ~UpstreamHeartbeats();

 private:
  class OpenStream;

  void Tick();
  absl::Duration OpenOrWait();

  HeartbeatHub& hub_;
  Upstream& upstream_;
  const Clock& clock_;
  // Used by Tick, which does not overlap itself, and by the destructor after its end.
  Backoff backoff_;
  std::shared_ptr<grpc::Channel> channel_;  // of the stream
  absl::Duration opened_;                   // monotonic
  absl::Duration open_after_;               // monotonic: the end of the back-off
  std::unique_ptr<OpenStream> stream_;      // null: none is open
  ScheduledTask tick_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_UPSTREAM_HEARTBEATS_H_
