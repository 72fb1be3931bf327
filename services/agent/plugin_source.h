// Fetches the definition of a plugin from the fleet.
#ifndef MUSTER_SERVICES_AGENT_PLUGIN_SOURCE_H_
#define MUSTER_SERVICES_AGENT_PLUGIN_SOURCE_H_

#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/runs.pb.h"
#include "services/client/client.h"

namespace muster {

// A plugin in the run's plan.
struct PlannedPlugin {
  std::string definition_yaml;
  absl::Time deadline;  // of the run
};

// Retries until it succeeds or the certificate expires. Fails as RunService.GetRun does, with
// NOT_FOUND (PAIR_NOT_PLANNED) if the run has no such plugin, or with CANCELLED (INTERRUPTED) on
// `stop`. Calls `on_wait` with the reason before each wait.
absl::StatusOr<PlannedPlugin> FetchPlannedPlugin(
    const client::Config& config, const std::function<void(const absl::Status& why)>& on_wait,
    const std::stop_token& stop);

// Asks the first target for the state of the run. Fails as RunService.GetRun does. Takes at most
// 20 s.
absl::StatusOr<v1::RunState> FetchRunState(const client::Config& config,
                                           const std::stop_token& stop);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_PLUGIN_SOURCE_H_
