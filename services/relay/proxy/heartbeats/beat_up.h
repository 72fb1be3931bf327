// The one stream by which a relay tells the status service of all heartbeats.
#ifndef MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_BEAT_UP_H_
#define MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_BEAT_UP_H_

#include <memory>
#include <stop_token>
#include <thread>

#include "services/relay/proxy/heartbeats/beat_hub.h"
#include "services/relay/proxy/way_up.h"

namespace muster {

// A thread that holds the stream for as long as there is a way up, and opens it again, with jitter,
// when it is lost or the way has changed. Thread-safe.
class BeatUp {
 public:
  BeatUp(BeatHub& hub, WayUp& way);
  ~BeatUp();

 private:
  void Run(const std::stop_token& stop);
  void Hold(const std::shared_ptr<grpc::Channel>& channel, const std::stop_token& stop);

  BeatHub& hub_;
  WayUp& way_;
  std::jthread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_BEAT_UP_H_
