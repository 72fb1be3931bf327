// The last report of each node, and the baseline.
#ifndef MUSTER_SERVICES_JOBS_CONFORMANCE_STORE_H_
#define MUSTER_SERVICES_JOBS_CONFORMANCE_STORE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/conformance.pb.h"
#include "muster/v1/deployments.pb.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/local_database.h"
#include "services/jobs/audit_outbox.h"

namespace muster {

// Keeps the report of a node that has ended, if this is a deployment of the type "conformance" that
// succeeded there, and the node has signed its records. To be called in the transaction that stores
// the outcome.
//
// `end`: the final record. The report has its time, by the clock of the node: a report that arrives
// late is not new. It has the present time if that is earlier, or if `end` has no time.
void KeepReport(sqlite::Connection& db, const v1::Deployment& deployment,
                const v1::DeploymentNode& node, const v1::JobRecord& end);

// Thread-safe; calls wait for the disk.
class ConformanceStore {
 public:
  // `database` with the schema of jobs_schema.h outlives this object.
  explicit ConformanceStore(sqlite::LocalDatabase& database) : database_(database) {}

  // Returns the nodes with a report by name, from the one after `token` on, without their reports:
  // at most `limit`, and those whose reports and differences have about kMaxPageBytes each
  // (page_size.h). `now`: the wall clock, as below.
  absl::StatusOr<std::vector<v1::NodeConformance>> List(std::string_view token, size_t limit,
                                                        absl::Time now, std::string* next);

  // NOT_FOUND (NO_CONFORMANCE_REPORT).
  absl::StatusOr<v1::NodeConformance> Get(const std::string& node, absl::Time now);

  // NOT_FOUND (NO_BASELINE).
  absl::StatusOr<v1::ConformanceBaseline> GetBaseline();

  // Makes the report of the node of `baseline` the baseline; its other fields are already set.
  // NOT_FOUND (NO_CONFORMANCE_REPORT), RESOURCE_EXHAUSTED (DISK_FULL).
  absl::StatusOr<v1::ConformanceBaseline> SetBaseline(v1::ConformanceBaseline baseline,
                                                      const std::string& vouched_by = "");

  // NOT_FOUND (NO_BASELINE).
  absl::StatusOr<v1::ConformanceBaseline> RemoveBaseline(const ChangeOrigin& by, absl::Time now);

  // Returns OK if the baseline admits all of these nodes, or there is none; else
  // FAILED_PRECONDITION (NOT_CONFORMANT). Without nodes the deployment is for all: the baseline
  // does not admit it.
  absl::Status CheckNodes(const std::vector<std::string>& nodes, absl::Time now);

 private:
  // Returns the reports of the first nodes, at least one, in one read; no value for one without.
  absl::StatusOr<std::vector<std::optional<v1::NodeConformance>>> ReadNodes(
      std::span<const std::string> nodes);

  sqlite::LocalDatabase& database_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_CONFORMANCE_STORE_H_
