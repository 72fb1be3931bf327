// How `muster agent` and `muster submit` say what became of a delivery.
#ifndef MUSTER_SERVICES_AGENT_OUTCOME_H_
#define MUSTER_SERVICES_AGENT_OUTCOME_H_

#include "services/client/client.h"

namespace muster {

// One or two lines on stderr; returns the exit code.
int SayOutcome(const client::Delivery& delivery);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_OUTCOME_H_
