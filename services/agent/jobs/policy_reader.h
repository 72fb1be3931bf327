// Reads the YAML of a node's policy.
#ifndef MUSTER_SERVICES_AGENT_JOBS_POLICY_READER_H_
#define MUSTER_SERVICES_AGENT_JOBS_POLICY_READER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "services/agent/jobs/command_rule.h"

namespace muster {

// Returns the rules of a policy (node_policy.h). INVALID_ARGUMENT (POLICY_UNUSABLE) lists every
// mistake, a line each: "file:line: field: ...".
absl::StatusOr<PolicyRules> ReadPolicy(std::string_view yaml, std::string_view file);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_POLICY_READER_H_
