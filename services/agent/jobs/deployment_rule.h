// The rule of a deployment: that of the node's policy, with the limits of its documents.
#ifndef MUSTER_SERVICES_AGENT_JOBS_DEPLOYMENT_RULE_H_
#define MUSTER_SERVICES_AGENT_JOBS_DEPLOYMENT_RULE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "services/agent/jobs/command_rule.h"
#include "services/common/templates/resolved_deployment.h"

namespace muster {

// Returns the action that the policy checks for a deployment: "deployment" or "ad-hoc".
std::string_view ActionOf(const TypeDocument& type);

// The network of a type without one.
inline constexpr std::string_view kNoNetwork = "none";

// Lowers the limits of the rule that admits a deployment to those of its documents. A type without
// a network gets none, also if the rule has one. A type with a network has the one of the
// rule; the policy has checked that they are equal. INVALID_ARGUMENT (INVALID_DOCUMENT: `image` is
// not that of the type).
absl::Status ApplyDeployment(const ResolvedDeployment& resolved, const std::string& image,
                             CommandRule* rule);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_DEPLOYMENT_RULE_H_
