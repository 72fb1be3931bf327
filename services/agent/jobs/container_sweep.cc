#include "services/agent/jobs/container_sweep.h"

#include <string_view>

#include "services/agent/docker/image_builder.h"
#include "services/agent/jobs/command_container.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

std::string LabelOf(const ContainerState& container, std::string_view label) {
  const auto found = container.labels.find(std::string(label));
  return found == container.labels.end() ? "" : found->second;
}

}  // namespace

absl::StatusOr<std::set<std::string>> SweepContainers(
    DockerEngine& docker, const std::string& folder, const std::string& node,
    absl::FunctionRef<bool(const std::string& job)> in_use) {
  ASSIGN_OR_RETURN(const auto containers, docker.ListContainers(kContainerFolderLabel, folder));
  std::set<std::string> left;
  for (const ContainerState& container : containers) {
    const std::string job = LabelOf(container, kContainerJobLabel);
    if (job.empty() || LabelOf(container, kContainerNodeLabel) != node) continue;
    if (in_use(job)) {
      left.insert(job);
      continue;
    }
    const absl::Status removed = docker.RemoveContainer(container.id);
    if (!removed.ok()) left.insert(job);
    Log(LogLevel::kWarning, "a container without a job is removed",
        {{"job", job}, {"container", container.id}, {"error", removed}});
  }
  return left;
}

absl::Status SweepBuilds(DockerEngine& docker, const std::string& builder,
                         absl::FunctionRef<bool(const std::string& job)> in_use) {
  ImageBuilder images(docker);
  ASSIGN_OR_RETURN(const auto jobs, images.ListJobs(builder));
  for (const std::string& job : jobs) {
    if (!in_use(job)) RETURN_IF_ERROR(images.Remove(job));
  }
  return absl::OkStatus();
}

}  // namespace muster
