// The status service, put together.
#ifndef MUSTER_SERVICES_STATUS_STATUS_SERVER_H_
#define MUSTER_SERVICES_STATUS_STATUS_SERVER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "services/common/service/service_main.h"
#include "services/status/config.h"

namespace muster {

class StatusServer : public RunningService {
 public:
  // Serves, and follows the aggregator whenever it can be reached.
  static absl::StatusOr<std::unique_ptr<StatusServer>> Start(const StatusConfig& config);

  virtual int port() const = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_STATUS_SERVER_H_
