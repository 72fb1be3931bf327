#include "services/agent/jobs/deployment_rule.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "services/common/errors/templates.h"
#include "services/common/identity/signed_command.h"

namespace muster {
namespace {

template <typename T>
void Lower(const std::optional<T>& limit, T* value) {
  if (limit) *value = std::min(*value, *limit);
}

}  // namespace

std::string_view ActionOf(const TypeDocument& type) {
  return type.ad_hoc ? kAdHocAction : kDeploymentAction;
}

absl::Status ApplyDeployment(const ResolvedDeployment& resolved, const std::string& image,
                             CommandRule* rule) {
  if (resolved.image() != image) {
    return errors::DeploymentImageDiffers(image, resolved.image());
  }
  if (resolved.type.network == kNoNetwork) rule->container.network = kNoNetwork;
  const TemplateLimits& limits = resolved.limits;
  Lower(limits.memory, &rule->container.memory);
  Lower(limits.processes, &rule->container.processes);
  Lower(limits.time, &rule->time_limit);
  Lower(limits.output, &rule->max_output);
  std::optional<int64_t> nano_cpus;
  if (limits.cpus) nano_cpus = static_cast<int64_t>(*limits.cpus * 1e9);
  Lower(nano_cpus, &rule->container.nano_cpus);
  return absl::OkStatus();
}

}  // namespace muster
