// Forwards the reports that plugins post locally.
#ifndef MUSTER_SERVICES_AGENT_PROGRESS_RELAY_H_
#define MUSTER_SERVICES_AGENT_PROGRESS_RELAY_H_

#include "services/agent/progress_endpoint.h"
#include "services/client/client.h"

namespace muster {

// Forwards to the run's listener unchanged, if `config` delivers there, and returns its response.
// Otherwise forwards to the status service, and converts its errors to the codes of a run's
// listener (400, 403, 503). Returns 500 if neither can be reached. `client`, of `config`, must
// outlive the relay.
ProgressRelay MakeProgressRelay(const client::Config& config, client::Client& client);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_PROGRESS_RELAY_H_
