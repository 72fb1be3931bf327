// The audit record of a new deployment.
#ifndef MUSTER_SERVICES_JOBS_DEPLOYMENT_AUDIT_H_
#define MUSTER_SERVICES_JOBS_DEPLOYMENT_AUDIT_H_

#include <string>

#include "muster/v1/deployments.pb.h"
#include "services/common/store/sqlite/connection.h"

namespace muster {

// Adds the record to the transaction that stores the deployment. It has what runs, on how many
// nodes, its workspace, what it retries or destroys, and whether the check of conformance was left
// out.
// `vouched_by`: as in ChangeOrigin.
void AddCreationRecord(sqlite::Connection& db, const v1::Deployment& deployment,
                       const v1::CreateDeploymentRequest& request, const std::string& vouched_by);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_DEPLOYMENT_AUDIT_H_
