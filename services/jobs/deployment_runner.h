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

// At most `max_followed` at the same time, and half of them of one creator, in the order of their
// creation; the others wait, and their problem reports it. Those that are cancelled, or whose
// creator was revoked, do not wait. Thread-safe.
class DeploymentRunner {
 public:
  DeploymentRunner(DeploymentFollower::Parts parts, size_t max_followed);
  ~DeploymentRunner();

  // Continues the deployments of an earlier process. Waits for the disk.
  absl::Status Start() ABSL_LOCKS_EXCLUDED(mutex_);

  // Follows a deployment that is stored. Must not block.
  void Add(DeploymentOfCreator deployment) ABSL_LOCKS_EXCLUDED(mutex_);

  // A deployment was cancelled, which is stored. Must not block.
  void HandleCancelled(const std::string& deployment) ABSL_LOCKS_EXCLUDED(mutex_);

  // The answers of `is_revoked` changed. Must not block.
  void HandleRevocations() ABSL_LOCKS_EXCLUDED(mutex_);

  // Stops all followers, and waits for their tasks. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  size_t followed() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t waiting() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The task: destroys the followers that have ended, and starts those that wait.
  void Tend() ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleEnd(const std::string& deployment) ABSL_LOCKS_EXCLUDED(mutex_);
  bool StartNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasShare(const std::string& creator) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExplainWaits() ABSL_LOCKS_EXCLUDED(mutex_);

  struct Waiting {
    DeploymentOfCreator one;
    bool explained = false;  // its problem says that it waits
  };
  struct Followed {
    std::string creator;
    std::unique_ptr<DeploymentFollower> follower;
  };

  const DeploymentFollower::Parts parts_;
  const size_t max_followed_;
  mutable Mutex mutex_;
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> ended_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Followed> followers_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, size_t> followed_of_ ABSL_GUARDED_BY(mutex_);  // by creator
  ScheduledTask tend_;  // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_DEPLOYMENT_RUNNER_H_
