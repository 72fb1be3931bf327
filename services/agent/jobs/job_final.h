// The final records of jobs that the agent ends.
#ifndef MUSTER_SERVICES_AGENT_JOBS_JOB_FINAL_H_
#define MUSTER_SERVICES_AGENT_JOBS_JOB_FINAL_H_

#include <string>

#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/jobs/job_plan.h"

namespace muster {

// It reached its time limit, while it did this last (empty: not known).
v1::JobRecord TimeLimitFinal(const JobPlan& plan, const std::string& doing);

// Docker, which also pulls the image of a container, or the files of a build needed too long.
v1::JobRecord TimeLimitBeforeStart(const JobPlan& plan, const absl::Status& failure);

// `what`: that of DeploymentState::WhyTooLarge.
v1::JobRecord StateTooLargeFinal(const std::string& what);

// A process in its container needed too much memory.
v1::JobRecord OutOfMemoryFinal(const JobPlan& plan);

// Adds a further detail, if it is not empty.
void AddDetail(const std::string& detail, v1::JobRecord::Final* final);

// The command exited, and the job failed nevertheless: its final record gets this outcome.
void ReplaceExit(const v1::JobRecord& failed, v1::JobRecord::Final* final);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_FINAL_H_
