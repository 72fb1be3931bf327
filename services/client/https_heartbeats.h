// Heartbeats without activity to a run's listener for legacy clients: GET /api/v1/health/....
#ifndef MUSTER_SERVICES_CLIENT_HTTPS_HEARTBEATS_H_
#define MUSTER_SERVICES_CLIENT_HTTPS_HEARTBEATS_H_

#include <string>

#include "services/client/heartbeats.h"
#include "services/client/https_request.h"

namespace muster::client {

// Sends each heartbeat as a request of at most 10 s over a kept connection. A listener without this
// path (404, 405) does not support heartbeats: UNIMPLEMENTED.
HeartbeatDialer MakeHttpsDialer(HttpsOptions options, std::string plugin, std::string node);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_HTTPS_HEARTBEATS_H_
