// The aggregator: stores, services and timers.
#ifndef MUSTER_SERVICES_AGGREGATOR_AGGREGATOR_H_
#define MUSTER_SERVICES_AGGREGATOR_AGGREGATOR_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "services/aggregator/config.h"
#include "services/common/service/service_main.h"

namespace muster {

class Aggregator : public RunningService {
 public:
  // Opens the state folder, recovers from a crash, and serves. `fail` is called if the disk fails
  // later: the process must then end and restart.
  static absl::StatusOr<std::unique_ptr<Aggregator>> Start(
      const AggregatorConfig& config, std::function<void(const absl::Status&)> fail);

  // The bound ports.
  virtual int port() const = 0;
  virtual int health_port() const = 0;
  virtual int join_port() const = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_AGGREGATOR_H_
