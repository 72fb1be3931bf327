// Deployments that try an ended one again, or destroy it.
#ifndef MUSTER_SERVICES_JOBS_DEPLOYMENT_SUCCESSOR_H_
#define MUSTER_SERVICES_JOBS_DEPLOYMENT_SUCCESSOR_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/deployments.pb.h"
#include "services/jobs/deployment_source.h"

namespace muster {

// The nodes of a successor.
struct SuccessorNodes {
  std::vector<std::string> nodes;                           // by name; at least one
  std::map<std::string, std::vector<std::string>> skipped;  // the other ones, by the reason
};

// Return the nodes on which the source may be tried again, or destroyed. `wanted`: all of them must
// be possible; empty: all nodes. `force` admits those on which it is not known whether the action
// ran, unless the type declares it idempotent. Fail with FAILED_PRECONDITION (DEPLOYMENT_NOT_ENDED,
// COMMAND_NOT_KEPT, WORKSPACE_DELETED, NOT_RETRIABLE).
absl::StatusOr<SuccessorNodes> NodesToRetry(const DeploymentSource& source,
                                            const std::vector<std::string>& wanted, bool force);
// The same, with NO_DESTROY_ACTION, NOTHING_TO_DESTROY and DEPLOYMENT_DESTROYED in place of
// NOT_RETRIABLE.
absl::StatusOr<SuccessorNodes> NodesToDestroy(const DeploymentSource& source,
                                              const std::vector<std::string>& wanted, bool force);

// Returns the plan of a request with `retry_of` or `destroys`, whose source this is. Fails as the
// functions above, or with INVALID_ARGUMENT (INVALID_DOCUMENT) if this version of the program does
// not accept the documents.
absl::StatusOr<v1::DeploymentPlan> PlanSuccessor(const DeploymentSource& source,
                                                 const v1::PlanDeploymentRequest& request);

// Checks the request of a new deployment with `retry_of` or `destroys`: its nodes as above, and
// that its content is that of the source (INVALID_ARGUMENT, INVALID_COMMAND).
absl::Status CheckSuccessor(const DeploymentSource& source,
                            const v1::CreateDeploymentRequest& request);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_DEPLOYMENT_SUCCESSOR_H_
