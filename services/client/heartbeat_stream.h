// Heartbeats over HeartbeatService.
#ifndef MUSTER_SERVICES_CLIENT_HEARTBEAT_STREAM_H_
#define MUSTER_SERVICES_CLIENT_HEARTBEAT_STREAM_H_

#include <memory>
#include <string>

#include "services/client/heartbeats.h"

namespace muster::client {

struct StatusChannels;

// The pair and node of heartbeats.
struct HeartbeatKey {
  std::string run;
  std::string plugin;
  std::string node;
};

// Opens one stream for each connection, to the targets in turn.
HeartbeatDialer MakeStreamDialer(std::shared_ptr<const StatusChannels> channels, HeartbeatKey key);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_HEARTBEAT_STREAM_H_
