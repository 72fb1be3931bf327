// The removal of containers and images that jobs have left.
#ifndef MUSTER_SERVICES_AGENT_JOBS_CONTAINER_SWEEP_H_
#define MUSTER_SERVICES_AGENT_JOBS_CONTAINER_SWEEP_H_

#include <set>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/agent/docker/docker_engine.h"

namespace muster {

// Removes the containers of the agent with this folder and this node whose job is not `in_use`.
// Leaves those of other agents. Returns the jobs that still have a container. Blocks on the daemon;
// the errors of DockerEngine, if the containers cannot be listed.
absl::StatusOr<std::set<std::string>> SweepContainers(
    DockerEngine& docker, const std::string& folder, const std::string& node,
    absl::FunctionRef<bool(const std::string& job)> in_use);

// Removes the images of builds of this agent (BuilderOf) whose job is not `in_use`, as far as they
// are not pulled images. Blocks as SweepContainers.
absl::Status SweepBuilds(DockerEngine& docker, const std::string& builder,
                         absl::FunctionRef<bool(const std::string& job)> in_use);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_CONTAINER_SWEEP_H_
