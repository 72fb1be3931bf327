// Which nodes a deployment is for.
#ifndef MUSTER_SERVICES_JOBS_CONTENT_TARGETS_H_
#define MUSTER_SERVICES_JOBS_CONTENT_TARGETS_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/base/mutex.h"
#include "services/common/store/sqlite/local_database.h"

namespace muster {

// Reads and parses the request of a deployment, which may be much larger than a part of a content,
// once for each node that reads contents. Thread-safe; waits for the disk.
class ContentTargets {
 public:
  static constexpr size_t kMaxRemembered = 10'000;  // more are read again

  // `database` with the schema of jobs_schema.h outlives this object.
  explicit ContentTargets(sqlite::LocalDatabase& database) : database_(database) {}

  // Returns whether the command of a deployment is for this node. `deployment`: of its row.
  absl::StatusOr<bool> Contains(int64_t deployment, const std::string& node)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  sqlite::LocalDatabase& database_;
  Mutex mutex_;
  // Targets, by deployment: no row has the number of an earlier one, and its request stays.
  std::set<std::pair<int64_t, std::string>> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_CONTENT_TARGETS_H_
