// The rule of a deployment: that of the node's policy, with the limits of its documents.
#ifndef MUSTER_SERVICES_AGENT_JOBS_DEPLOYMENT_RULE_H_
#define MUSTER_SERVICES_AGENT_JOBS_DEPLOYMENT_RULE_H_

#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/jobs/command_rule.h"

namespace muster {

// Resolves the deployment of a container, and lowers the limits of the rule that admits it to those
// of its documents. A type without a network gets none, also if the rule has one. INVALID_ARGUMENT
// (INVALID_DOCUMENT, also if the image is not that of the type; INVALID_PARAMETERS) or
// PERMISSION_DENIED (POLICY_REFUSED: the type requires another network than that of the rule).
absl::Status ApplyDeployment(const v1::Command::Container& container, CommandRule* rule);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_DEPLOYMENT_RULE_H_
