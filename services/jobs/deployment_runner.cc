#include "services/jobs/deployment_runner.h"

#include <algorithm>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace muster {

DeploymentRunner::DeploymentRunner(DeploymentFollower::Parts parts, size_t max_followed)
    : parts_(std::move(parts)),
      max_followed_(max_followed),
      tend_(parts_.timers, parts_.executor, [this] { Tend(); }) {}

DeploymentRunner::~DeploymentRunner() { Stop(); }

absl::Status DeploymentRunner::Start() {
  ASSIGN_OR_RETURN(const auto open, parts_.store.ListOpen());
  for (const DeploymentOfCreator& deployment : open) Add(deployment);
  return absl::OkStatus();
}

void DeploymentRunner::Add(DeploymentOfCreator deployment) {
  {
    MutexLock lock(mutex_);
    waiting_.push_back({std::move(deployment)});
  }
  tend_.RunNow();
}

void DeploymentRunner::Stop() {
  tend_.Stop();
  std::map<std::string, Followed> followers;
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
  std::vector<Followed> over;
  {
    MutexLock lock(mutex_);
    for (const std::string& deployment : std::exchange(ended_, {})) {
      const auto found = followers_.find(deployment);
      if (found == followers_.end()) continue;
      if (--followed_of_[found->second.creator] == 0) followed_of_.erase(found->second.creator);
      over.push_back(std::move(found->second));
      followers_.erase(found);
    }
    while (StartNext()) {
    }
  }
  ExplainWaits();
}

bool DeploymentRunner::HasShare(const std::string& creator) const {
  const auto found = followed_of_.find(creator);
  return found == followed_of_.end() || found->second < max_followed_ / 2;
}

// Starts the first that need not wait. Returns false if there is none.
bool DeploymentRunner::StartNext() {
  const auto next = std::ranges::find_if(
      waiting_, [&](const Waiting& waiting) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        if (waiting.one.cancelled || parts_.is_revoked(waiting.one.creator)) return true;
        return followers_.size() < max_followed_ && HasShare(waiting.one.creator);
      });
  if (next == waiting_.end()) return false;
  const DeploymentOfCreator one = std::move(next->one);
  waiting_.erase(next);
  if (followers_.contains(one.deployment)) return true;
  ++followed_of_[one.creator];
  followers_[one.deployment] = {
      one.creator, std::make_unique<DeploymentFollower>(
                       parts_, one.deployment, [this, one] { HandleEnd(one.deployment); })};
  return true;
}

// Only this task starts those that wait, so a follower never has its problem replaced.
void DeploymentRunner::ExplainWaits() {
  std::map<std::string, std::string> problems;  // by deployment
  {
    MutexLock lock(mutex_);
    for (Waiting& waiting : waiting_) {
      if (std::exchange(waiting.explained, true)) continue;
      problems[waiting.one.deployment] =
          HasShare(waiting.one.creator) ? "it waits for other deployments to end"
                                        : "it waits for other deployments of its creator to end";
    }
  }
  for (const auto& [deployment, problem] : problems) {
    const absl::Status stored = parts_.store.SetProblem(deployment, problem);
    if (stored.ok() || absl::IsNotFound(stored)) continue;
    LogLimited(LogLevel::kError, "cannot store why a deployment waits", "",
               {{"deployment", deployment}, {"error", stored}});
  }
}

void DeploymentRunner::HandleCancelled(const std::string& deployment) {
  {
    MutexLock lock(mutex_);
    for (Waiting& waiting : waiting_) {
      if (waiting.one.deployment == deployment) waiting.one.cancelled = true;
    }
    const auto found = followers_.find(deployment);
    if (found != followers_.end()) found->second.follower->Wake();
  }
  tend_.RunNow();
}

void DeploymentRunner::HandleRevocations() {
  {
    MutexLock lock(mutex_);
    for (const auto& [deployment, followed] : followers_) {
      if (parts_.is_revoked(followed.creator)) followed.follower->Wake();
    }
  }
  tend_.RunNow();
}

void DeploymentRunner::HandleEnd(const std::string& deployment) {
  {
    MutexLock lock(mutex_);
    ended_.push_back(deployment);
  }
  tend_.RunNow();
}

}  // namespace muster
