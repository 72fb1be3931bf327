// Computes the plan of a run from an operator's request.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_PLAN_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/store/records.h"

namespace muster {

// Limits of a plan, as in the API.
inline constexpr size_t kMaxPlugins = 100;
inline constexpr size_t kMaxNodes = 100'000;
inline constexpr size_t kMaxPairs = 2'000'000;

struct Plan {
  std::vector<PluginRecord> plugins;  // by name
  std::vector<PlannedPair> pairs;
};

// `plugins`: definitions in YAML, or names of the agent's modules ("hostfacts", "systemd-logs"). A
// plugin that runs once is planned for the node "global", any other for each of `nodes`. Fails with
// INVALID_ARGUMENT: INVALID_PLUGIN, INVALID_NAME (also for a repeated name), EMPTY_PLAN or
// PLAN_TOO_LARGE.
absl::StatusOr<Plan> MakePlan(const std::vector<std::string>& plugins,
                              const std::vector<std::string>& nodes);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_PLAN_H_
