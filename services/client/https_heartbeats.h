// Heartbeats to a run's listener for old clients: GET /api/v1/health/..., a bare sign of life.
#ifndef MUSTER_SERVICES_CLIENT_HTTPS_HEARTBEATS_H_
#define MUSTER_SERVICES_CLIENT_HTTPS_HEARTBEATS_H_

#include <string>

#include "services/client/heartbeats.h"
#include "services/client/https_request.h"

namespace muster::client {

// Each beat is a request of at most 10 s over a connection that is kept. A listener without that
// path (404, 405) is one without heartbeats: UNIMPLEMENTED.
BeatDialler MakeHttpsDialler(HttpsOptions options, std::string plugin, std::string node);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_HTTPS_HEARTBEATS_H_
