// The stream with the heartbeats of all senders of this relay.
#ifndef MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_UPSTREAM_HEARTBEATS_H_
#define MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_UPSTREAM_HEARTBEATS_H_

#include <memory>
#include <stop_token>
#include <thread>

#include "absl/status/status.h"
#include "services/relay/proxy/heartbeats/heartbeat_hub.h"
#include "services/relay/upstream/upstream.h"

namespace muster {

// Keeps a stream open to the status service, or to the parent, while there is an upstream channel.
// Opens it again with back-off when it has ended, or when the channel has changed. Runs one
// thread. Thread-safe.
class UpstreamHeartbeats {
 public:
  UpstreamHeartbeats(HeartbeatHub& hub, Upstream& upstream);
  ~UpstreamHeartbeats();

 private:
  void Run(const std::stop_token& stop);
  absl::Status KeepOpen(const std::shared_ptr<grpc::Channel>& channel, const std::stop_token& stop);

  HeartbeatHub& hub_;
  Upstream& upstream_;
  std::jthread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_UPSTREAM_HEARTBEATS_H_
