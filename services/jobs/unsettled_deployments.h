// The deployments that ended without the outcome of a node, which may still arrive.
#ifndef MUSTER_SERVICES_JOBS_UNSETTLED_DEPLOYMENTS_H_
#define MUSTER_SERVICES_JOBS_UNSETTLED_DEPLOYMENTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/local_database.h"

namespace muster {

struct UnsettledDeployment {
  int64_t id = 0;  // of its row
  std::string deployment;
  std::string creator;     // URI
  bool cancelled = false;  // by an operator
  std::string job;
  std::string late_time;  // serialised: Job.late_time of which the records are stored
};

// Thread-safe; calls wait for the disk.
class UnsettledDeployments {
 public:
  // `database` with the schema of jobs_schema.h outlives this object.
  explicit UnsettledDeployments(sqlite::LocalDatabase& database) : database_(database) {}

  // Returns those that are unsettled, the oldest first, from the one after `id` on.
  absl::StatusOr<std::vector<UnsettledDeployment>> List(int64_t id, size_t limit);

  // The late records of the deployment are stored, until DeploymentStore::EndWithJob; or no outcome
  // will arrive. It stays an ended one for every other call. NOT_FOUND (DEPLOYMENT_NOT_FOUND) if it
  // is not unsettled.
  absl::Status Reopen(const std::string& deployment);
  absl::Status Settle(const std::string& deployment);

 private:
  absl::Status Set(const std::string& deployment, int64_t value);

  sqlite::LocalDatabase& database_;
};

// A deployment that has ended is unsettled if the own outcome of one of its nodes may still
// arrive (deployment_node.h), until the root relay has removed its job. No clock settles it: the
// outcome would be lost after a jump of the clock. `id`: of its row.
void SetUnsettledAtEnd(sqlite::Connection& db, int64_t id);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_UNSETTLED_DEPLOYMENTS_H_
