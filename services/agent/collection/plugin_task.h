// How this node gathers for a plugin.
#ifndef MUSTER_SERVICES_AGENT_COLLECTION_PLUGIN_TASK_H_
#define MUSTER_SERVICES_AGENT_COLLECTION_PLUGIN_TASK_H_

#include <string>

#include "absl/status/statusor.h"
#include "services/agent/agent_config.h"
#include "services/agent/jobs/node_policy.h"

namespace muster {

// The configuration for the plugin of `client`, by its definition and what the policy admits.
// INVALID_PLUGIN, POLICY_REFUSED, POLICY_UNUSABLE, or MODULE_UNKNOWN: this node gathers nothing for
// it. An image is none of its business: FAILED_PRECONDITION (NOT_FOR_AGENTS).
absl::StatusOr<AgentConfig> PlanPlugin(client::Config client, std::string definition_yaml,
                                       PolicyFile& policy);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_COLLECTION_PLUGIN_TASK_H_
