// Follows all deployments that have not ended.
#ifndef MUSTER_SERVICES_JOBS_DEPLOYMENT_RUNNER_H_
#define MUSTER_SERVICES_JOBS_DEPLOYMENT_RUNNER_H_

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/jobs/deployment_follower.h"

namespace muster {

// At most `max_followed` at the same time, in the order of their creation; the others wait.
// Thread-safe.
class DeploymentRunner {
 public:
  DeploymentRunner(DeploymentFollower::Parts parts, size_t max_followed);
  ~DeploymentRunner();

  // Continues the deployments of an earlier process. Waits for the disk.
  absl::Status Start() ABSL_LOCKS_EXCLUDED(mutex_);

  // Follows a deployment that is stored. Must not block.
  void Add(const std::string& deployment) ABSL_LOCKS_EXCLUDED(mutex_);

  // Stops all followers, and waits for their tasks. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  size_t followed() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t waiting() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The task: destroys the followers that have ended, and starts those that wait.
  void Tend() ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleEnd(const std::string& deployment) ABSL_LOCKS_EXCLUDED(mutex_);

  const DeploymentFollower::Parts parts_;
  const size_t max_followed_;
  mutable Mutex mutex_;
  std::deque<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> ended_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<DeploymentFollower>> followers_ ABSL_GUARDED_BY(mutex_);
  ScheduledTask tend_;  // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_DEPLOYMENT_RUNNER_H_
