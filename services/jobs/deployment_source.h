// A deployment that another one tries again or destroys.
#ifndef MUSTER_SERVICES_JOBS_DEPLOYMENT_SOURCE_H_
#define MUSTER_SERVICES_JOBS_DEPLOYMENT_SOURCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/v1/deployments.pb.h"
#include "services/common/store/sqlite/connection.h"
#include "services/jobs/deployment_node.h"

namespace muster {

struct SourceNode {
  std::string node;
  Attempt attempt = Attempt::kUnknown;
  std::string retried_by;    // the deployment that retries it on this node; empty: none
  std::string destroyed_by;  // the latest one that destroys it on this node; empty: none
  Attempt destruction = Attempt::kUnknown;  // of `destroyed_by`
};

struct DeploymentSource {
  v1::Deployment message;               // without nodes; with the deletion of its workspace
  v1::CreateDeploymentRequest request;  // empty: an earlier Muster removed it
  std::vector<SourceNode> nodes;        // by name
  // The latest one that destroys it, or a deployment that retries connect with it; empty: none.
  std::string destroyed_by;
  // One that retries or destroys any of these, and has not ended; empty: none.
  std::string open_successor;
};

// Returns nothing if the deployment is not stored.
std::optional<DeploymentSource> ReadSource(sqlite::Connection& db, const std::string& deployment);

// Stores at the nodes of the source which deployment retries or destroys it there; a destruction
// also at those of all deployments that are connected with the source by retries. Does nothing for
// a deployment without a source.
void MarkSource(sqlite::Connection& db, const v1::Deployment& successor,
                const v1::CreateDeploymentRequest& request);

// Sets the deployments that retry and destroy this one, and the deletion of its workspace.
void AddRelated(sqlite::Connection& db, v1::Deployment* message);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_DEPLOYMENT_SOURCE_H_
