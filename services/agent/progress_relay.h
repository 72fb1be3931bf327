// Where reports that plugins post locally go.
#ifndef MUSTER_SERVICES_AGENT_PROGRESS_RELAY_H_
#define MUSTER_SERVICES_AGENT_PROGRESS_RELAY_H_

#include "services/agent/progress_endpoint.h"
#include "services/client/client.h"

namespace muster {

// To the run's listener as they are, if that is where `config` delivers to, and its answer back;
// else to the status service, whose errors become the codes that a run's listener has for them
// (400, 403, 503). 500 if neither can be reached. `client`, of `config`, outlives the relay.
ProgressRelay MakeProgressRelay(const client::Config& config, client::Client& client);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_PROGRESS_RELAY_H_
