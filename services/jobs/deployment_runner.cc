#include "services/jobs/deployment_runner.h"

#include <utility>

#include "services/common/base/status_macros.h"

namespace muster {

DeploymentRunner::DeploymentRunner(DeploymentFollower::Parts parts, size_t max_followed)
    : parts_(std::move(parts)),
      max_followed_(max_followed),
      tend_(parts_.timers, parts_.executor, [this] { Tend(); }) {}

DeploymentRunner::~DeploymentRunner() { Stop(); }

absl::Status DeploymentRunner::Start() {
  ASSIGN_OR_RETURN(const auto open, parts_.store.ListOpen());
  for (const std::string& deployment : open) Add(deployment);
  return absl::OkStatus();
}

void DeploymentRunner::Add(const std::string& deployment) {
  {
    MutexLock lock(mutex_);
    waiting_.push_back(deployment);
  }
  tend_.RunNow();
}

void DeploymentRunner::Stop() {
  tend_.Stop();
  std::map<std::string, std::unique_ptr<DeploymentFollower>> followers;
  {
    MutexLock lock(mutex_);
    followers = std::exchange(followers_, {});
  }
}

size_t DeploymentRunner::followed() const {
  MutexLock lock(mutex_);
  return followers_.size();
}

size_t DeploymentRunner::waiting() const {
  MutexLock lock(mutex_);
  return waiting_.size();
}

// A follower is destroyed without the lock: it waits for its tasks, which may call HandleEnd.
void DeploymentRunner::Tend() {
  std::vector<std::unique_ptr<DeploymentFollower>> over;
  {
    MutexLock lock(mutex_);
    for (const std::string& deployment : std::exchange(ended_, {})) {
      const auto found = followers_.find(deployment);
      if (found == followers_.end()) continue;
      over.push_back(std::move(found->second));
      followers_.erase(found);
    }
    while (!waiting_.empty() && followers_.size() < max_followed_) {
      const std::string deployment = std::move(waiting_.front());
      waiting_.pop_front();
      if (followers_.contains(deployment)) continue;
      followers_[deployment] = std::make_unique<DeploymentFollower>(
          parts_, deployment, [this, deployment] { HandleEnd(deployment); });
    }
  }
}

void DeploymentRunner::HandleEnd(const std::string& deployment) {
  {
    MutexLock lock(mutex_);
    ended_.push_back(deployment);
  }
  tend_.RunNow();
}

}  // namespace muster
