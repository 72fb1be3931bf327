// The outcome of a deployment on one node, from the records of its job.
#ifndef MUSTER_SERVICES_JOBS_DEPLOYMENT_NODE_H_
#define MUSTER_SERVICES_JOBS_DEPLOYMENT_NODE_H_

#include "muster/v1/deployments.pb.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/templates/resolved_deployment.h"

namespace muster {

// Returns whether its container exited with 0.
bool HasSucceeded(const v1::DeploymentNode& node);

// The progress of an action on one node, after its deployment has ended.
enum class Attempt {
  kNeverStarted,
  kFailed,   // it may have started, and runs no more
  kUnknown,  // it may have started, and may still run
  kSucceeded,
};

// Returns kUnknown for a node without an outcome.
Attempt AttemptOf(const v1::DeploymentNode& node);

// Returns whether the outcome is that of the root relay, which gave up the node, and the node may
// still report its own.
bool MayReportLater(const v1::DeploymentNode& node);

// Applies one record. The order of the records of a node is that of their sequence.
void ApplyRecord(const v1::JobRecord& record, v1::DeploymentNode* node);

// Fails a node that succeeded, and whose outputs the documents do not admit (OUTPUTS_INVALID). A
// genuine agent refuses them itself.
void CheckOutputs(const ResolvedDeployment& deployment, v1::DeploymentNode* node);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_DEPLOYMENT_NODE_H_
