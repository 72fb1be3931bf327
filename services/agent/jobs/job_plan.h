// The execution of a command, from the message and the policy.
#ifndef MUSTER_SERVICES_AGENT_JOBS_JOB_PLAN_H_
#define MUSTER_SERVICES_AGENT_JOBS_JOB_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/jobs/command_judge.h"
#include "services/agent/jobs/command_rule.h"

namespace muster {

struct JobPlan {
  std::vector<std::string> argv;  // an absolute path first, unless it runs in a container
  std::string user;               // empty: as this process
  std::string directory;
  std::vector<std::string> environment;  // NAME=value, in addition to those of all jobs
  absl::Duration time_limit;
  // That of the command and the policy, which messages name: each relay subtracts a little for its
  // way. Zero: not known.
  absl::Duration stated_limit;
  int64_t max_output = 0;
  bool keep_output = true;
  // The image and the limits of a container; an empty image for a command on the node.
  std::string image;
  ContainerLimits container;
  std::string deployment;  // its id; empty for another command
  bool is_build = false;   // `image` is that on which the built one is based
};

// Returns the target that names this node, otherwise any, which the judge refuses.
v1::JobCommand::Target TargetFor(const v1::JobCommand& command, const std::string& node);

// Returns the plan of an accepted command. The smallest of the three time limits applies.
JobPlan MakeJobPlan(const v1::JobCommand& command, const Verdict& verdict);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_PLAN_H_
