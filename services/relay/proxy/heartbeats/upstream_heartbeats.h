// The one stream by which a relay tells the status service of all heartbeats.
#ifndef MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_UPSTREAM_HEARTBEATS_H_
#define MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_UPSTREAM_HEARTBEATS_H_

#include <memory>
#include <stop_token>
#include <thread>

#include "services/relay/proxy/heartbeats/heartbeat_hub.h"
#include "services/relay/upstream/upstream.h"

namespace muster {

// A thread that holds the stream for as long as there is a way up, and opens it again, with jitter,
// when it is lost or the way has changed. Thread-safe.
class UpstreamHeartbeats {
 public:
  UpstreamHeartbeats(HeartbeatHub& hub, Upstream& upstream);
  ~UpstreamHeartbeats();

 private:
  void Run(const std::stop_token& stop);
  void Hold(const std::shared_ptr<grpc::Channel>& channel, const std::stop_token& stop);

  HeartbeatHub& hub_;
  Upstream& upstream_;
  std::jthread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_UPSTREAM_HEARTBEATS_H_
