// The version of a template that a build has created.
#ifndef MUSTER_SERVICES_JOBS_BUILT_VERSION_H_
#define MUSTER_SERVICES_JOBS_BUILT_VERSION_H_

#include <cstdint>

#include "muster/v1/deployments.pb.h"
#include "services/common/store/sqlite/connection.h"

namespace muster {

// Stores the version in the transaction in which its build ends, and sets the image of `*message`.
// If the version was stored meanwhile from the same files, its image is that of the message.
// Otherwise the build has failed, with its problem. `id`: the row of the deployment, with its node.
void StoreBuiltVersion(sqlite::Connection& db, int64_t id, v1::Deployment* message);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_BUILT_VERSION_H_
