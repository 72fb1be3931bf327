// The execution of a command, from the message and the policy.
#ifndef MUSTER_SERVICES_AGENT_JOBS_JOB_PLAN_H_
#define MUSTER_SERVICES_AGENT_JOBS_JOB_PLAN_H_

#include <string>

#include "muster/v1/jobs.pb.h"
#include "services/agent/jobs/command_judge.h"
#include "services/agent/jobs/job_process.h"

namespace muster {

// Returns the target that names this node, otherwise any, which the judge refuses.
v1::JobCommand::Target TargetFor(const v1::JobCommand& command, const std::string& node);

// Returns the plan of an accepted command. The smallest of the three time limits applies.
JobPlan MakeJobPlan(const v1::JobCommand& command, const Verdict& verdict);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_PLAN_H_
