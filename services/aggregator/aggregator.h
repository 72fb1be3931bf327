// The aggregator, put together: stores below, services above, time in between.
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
  // Opens the state folder, recovers what a crash left, and serves. `fail` is called if the disk
  // fails later: the process then has to end and start anew.
  static absl::StatusOr<std::unique_ptr<Aggregator>> Start(
      const AggregatorConfig& config, std::function<void(const absl::Status&)> fail);

  // Ports that were taken.
  virtual int port() const = 0;
  virtual int health_port() const = 0;
  virtual int join_port() const = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_AGGREGATOR_H_
