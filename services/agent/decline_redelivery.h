// Tells the fleet that a node cannot deliver a damaged result again.
#ifndef MUSTER_SERVICES_AGENT_DECLINE_REDELIVERY_H_
#define MUSTER_SERVICES_AGENT_DECLINE_REDELIVERY_H_

#include <stop_token>

#include "absl/status/status.h"
#include "services/client/client.h"

namespace muster {

// Calls ResultService.DeclineRedelivery at the first target, for the result that `config` names.
// The operator sees the reason and the message of `why`, cut to 256 bytes. Takes at most 20 s.
absl::Status DeclineRedelivery(const client::Config& config, const absl::Status& why,
                               const std::stop_token& stop);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_DECLINE_REDELIVERY_H_
