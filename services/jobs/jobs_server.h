// The jobs service, put together.
#ifndef MUSTER_SERVICES_JOBS_JOBS_SERVER_H_
#define MUSTER_SERVICES_JOBS_JOBS_SERVER_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/service/service_main.h"
#include "services/jobs/config.h"

namespace muster {

class JobsServer : public RunningService {
 public:
  // Serves, and follows the aggregator and the root relay whenever they can be reached. Calls
  // `fail` if the disk fails: the process must end, and its next start recovers the database.
  static absl::StatusOr<std::unique_ptr<JobsServer>> Start(
      const JobsServiceConfig& config, std::function<void(const absl::Status&)> fail);

  virtual int port() const = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_JOBS_SERVER_H_
