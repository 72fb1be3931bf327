// The lines of a policy that would admit a refused container.
#ifndef MUSTER_SERVICES_AGENT_JOBS_POLICY_HINT_H_
#define MUSTER_SERVICES_AGENT_JOBS_POLICY_HINT_H_

#include <string>
#include <vector>

#include "services/agent/jobs/command_rule.h"

namespace muster {

// Changes of a policy. Each line replaces the line of the rule with the same field, and keeps what
// that one admits.
struct PolicyHint {
  std::string place;  // "set in the rule with the image ..." or "missing below containers"
  std::string lines;
};

// Returns whether the rule has the image and the command.
bool MayRun(const CommandRule& rule, const CommandRequest& request);

// Returns the parts of the request that a rule with its image, command and action does not admit,
// such as "the workspace net-1, the secret prod/db"; empty: it admits all of them.
std::string NotAdmittedBy(const CommandRule& rule, const CommandRequest& request);

// Returns all changes that let this rule admit the request.
PolicyHint ChangesOf(const CommandRule& rule, const CommandRequest& request);

// Returns the changes of the first rule that may run it, or a new rule if there is none. The new
// rule admits this command in any content of the image's name, and no other command.
PolicyHint HintFor(const std::vector<CommandRule>& rules, const CommandRequest& request);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_POLICY_HINT_H_
