// From what an operator asks for to the plan of a run.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_PLAN_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/store/records.h"

namespace muster {

// Limits of a plan (the API states them).
inline constexpr size_t kMaxPlugins = 100;
inline constexpr size_t kMaxNodes = 100'000;
inline constexpr size_t kMaxPairs = 2'000'000;

struct Plan {
  std::vector<PluginRecord> plugins;  // by name
  std::vector<PlannedPair> pairs;
};

// `plugins`: definitions in YAML, or names of the agent's modules ("hostfacts", "systemd-logs").
// Every plugin that runs once is planned for the node "global", every other for each of `nodes`.
// INVALID_ARGUMENT: INVALID_PLUGIN, INVALID_NAME, EMPTY_PLAN, PLAN_TOO_LARGE; a name that is there
// twice is refused.
absl::StatusOr<Plan> MakePlan(const std::vector<std::string>& plugins,
                              const std::vector<std::string>& nodes);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_PLAN_H_
