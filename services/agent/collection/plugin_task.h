// Plans how this node collects for a plugin.
#ifndef MUSTER_SERVICES_AGENT_COLLECTION_PLUGIN_TASK_H_
#define MUSTER_SERVICES_AGENT_COLLECTION_PLUGIN_TASK_H_

#include <string>

#include "absl/status/statusor.h"
#include "services/agent/agent_config.h"
#include "services/agent/jobs/node_policy.h"

namespace muster {

// Returns the configuration for the plugin of `client`, from its definition and the policy. Fails
// with INVALID_PLUGIN, POLICY_REFUSED, POLICY_UNUSABLE or MODULE_UNKNOWN if this node cannot
// collect for it, and with FAILED_PRECONDITION (NOT_FOR_AGENTS) for a plugin with an image.
absl::StatusOr<AgentConfig> PlanPlugin(client::Config client, std::string definition_yaml,
                                       PolicyFile& policy);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_COLLECTION_PLUGIN_TASK_H_
