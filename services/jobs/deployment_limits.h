// The limits of the stored deployments.
#ifndef MUSTER_SERVICES_JOBS_DEPLOYMENT_LIMITS_H_
#define MUSTER_SERVICES_JOBS_DEPLOYMENT_LIMITS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "services/common/store/sqlite/connection.h"

namespace muster {

struct DeploymentLimits {
  int64_t max_open = 1'000;    // one creator may have half of them
  int64_t max_ended = 10'000;  // a further one replaces the oldest
};

// Checks in the transaction of the caller that `creator` (a URI) may have a further deployment, and
// removes the oldest ended ones beyond the limit, of the creator with the most: one operator does
// not remove the history of others. A call removes at most 10. RESOURCE_EXHAUSTED
// (TOO_MANY_DEPLOYMENTS).
absl::Status MakeRoomForDeployment(sqlite::Connection& db, const std::string& creator,
                                   const DeploymentLimits& limits);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_DEPLOYMENT_LIMITS_H_
