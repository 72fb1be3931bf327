// The report of a delivery's outcome by `muster agent` and `muster submit`.
#ifndef MUSTER_SERVICES_AGENT_OUTCOME_H_
#define MUSTER_SERVICES_AGENT_OUTCOME_H_

#include "services/client/client.h"

namespace muster {

// Writes one or two lines to stderr. Returns the exit code.
int PrintOutcome(const client::Delivery& delivery);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_OUTCOME_H_
