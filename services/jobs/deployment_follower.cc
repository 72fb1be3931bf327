#include "services/jobs/deployment_follower.h"

#include <chrono>
#include <utility>

#include "muster/v1/jobs.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/rpc/call_later.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kAnswerWithin(30);
constexpr BackoffOptions kBackoff = {absl::Milliseconds(200), absl::Seconds(10)};
constexpr absl::Duration kDiskRetry = absl::Seconds(1);

// Returns whether the relay would refuse the command again.
bool IsFinal(const absl::Status& answer) {
  switch (answer.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kNotFound:
      return true;
    case absl::StatusCode::kPermissionDenied:
      return ReasonOf(answer) == "COMMAND_REFUSED";
    case absl::StatusCode::kFailedPrecondition:
      return ReasonOf(answer) == "COMMAND_EXPIRED";
    default:
      return false;
  }
}

v1::SubmitJobRequest SubmitRequest(const v1::CreateDeploymentRequest& from) {
  v1::SubmitJobRequest request;
  *request.mutable_command() = from.command();
  *request.mutable_nodes() = from.nodes();
  request.set_parallel(from.parallel());
  if (from.has_wait()) *request.mutable_wait() = from.wait();
  return request;
}

}  // namespace

DeploymentFollower::DeploymentFollower(Parts parts, std::string deployment,
                                       std::function<void()> ended)
    : parts_(std::move(parts)),
      deployment_(std::move(deployment)),
      ended_(std::move(ended)),
      backoff_(kBackoff),
      task_(parts_.timers, parts_.executor, [this] { Step(); }) {
  {
    MutexLock lock(answer_->mutex);
    answer_->task = &task_;
  }
  task_.RunNow();
}

DeploymentFollower::~DeploymentFollower() {
  {
    MutexLock lock(answer_->mutex);
    answer_->task = nullptr;
  }
  task_.Stop();
  watch_.reset();
}

void DeploymentFollower::Step() {
  if (is_over_) return;
  if (watch_ != nullptr) {
    std::optional<v1::Job> complete;
    std::optional<absl::Status> lost;
    {
      MutexLock lock(mutex_);
      complete = complete_;
      lost = lost_;
    }
    if (complete) return EndOrRetry(parts_.store.EndWithJob(deployment_, *complete));
    if (lost) return Fail(refused_.ok() ? *lost : refused_);
    return;
  }
  if (!submitted_) return Submit();
  std::optional<absl::Status> status;
  {
    MutexLock lock(answer_->mutex);
    status = std::exchange(answer_->status, std::nullopt);
  }
  if (status) HandleAnswer(*status);
}

void DeploymentFollower::Submit() {
  const auto open = parts_.store.GetOpen(deployment_);
  if (absl::IsNotFound(open.status())) return EndOrRetry(absl::OkStatus());
  if (!open.ok()) {
    LogLimited(LogLevel::kError, "cannot read a deployment; trying again", "",
               {{"deployment", deployment_}, {"error", open.status()}});
    return task_.RunAfter(kDiskRetry);
  }
  job_ = open->message.job();
  {
    MutexLock lock(mutex_);
    position_ = open->position;
  }
  problem_ = open->message.problem();
  if (open->message.state() == v1::DEPLOYMENT_STATE_RUNNING) return Watch();
  const auto channel = parts_.relay();
  if (channel == nullptr) return HandleAnswer(absl::UnavailableError("no connection to the relay"));
  submitted_ = true;
  CallLater<v1::JobService, v1::SubmitJobRequest, v1::Job>(
      channel, &v1::JobService::Stub::async::SubmitJob, SubmitRequest(open->request), kAnswerWithin,
      [answer = answer_](const absl::Status& status, const v1::Job&) {
        MutexLock lock(answer->mutex);
        answer->status = status;
        if (answer->task != nullptr) answer->task->RunNow();
      });
}

void DeploymentFollower::HandleAnswer(const absl::Status& status) {
  if (status.ok() || ReasonOf(status) == "COMMAND_EXPIRED") {
    refused_ = status;
    return Watch();
  }
  if (IsFinal(status)) return Fail(status);
  submitted_ = false;
  SetProblem(status);
  task_.RunAfter(backoff_.Next(RetryAfterOf(status)));
}

// A refused command does not run unless an earlier call brought it to the relay: the watch shows
// it.
void DeploymentFollower::Watch() {
  Follower::Options options;
  options.channel = parts_.relay;
  options.method = "/muster.v1.JobService/WatchJob";
  options.backoff = kBackoff;
  options.request = [this] {
    v1::WatchJobRequest request;
    request.set_job(job_);
    request.set_omit_output(true);
    MutexLock lock(mutex_);
    request.set_position(position_);
    return request;
  };
  options.handle = [this](const v1::WatchJobResponse& response, Follower::Done done) {
    HandleResponse(response, std::move(done));
  };
  options.ended = [this](const absl::Status& why, bool) { HandleWatchEnd(why); };
  watch_ =
      std::make_unique<Follower>(std::move(options), parts_.clock, parts_.timers, parts_.executor);
}

void DeploymentFollower::HandleResponse(const v1::WatchJobResponse& response, Follower::Done done) {
  const absl::Status stored = parts_.store.AddRecords(deployment_, response);
  if (stored.ok()) {
    MutexLock lock(mutex_);
    position_ = response.position();
    if (response.complete()) complete_ = response.job();
  } else if (absl::IsNotFound(stored)) {  // it has ended
    MutexLock lock(mutex_);
    lost_ = stored;
  } else {
    LogLimited(LogLevel::kError, "cannot store the records of a deployment; reading them again", "",
               {{"deployment", deployment_}, {"error", stored}});
  }
  done(stored);
  if (response.complete() || absl::IsNotFound(stored)) task_.RunNow();
}

// The root relay removes an ended job after some days. One that was restored from a backup may have
// fewer records than were read: they are read again.
void DeploymentFollower::HandleWatchEnd(const absl::Status& why) {
  const std::string reason = ReasonOf(why);
  {
    MutexLock lock(mutex_);
    if (reason == "INVALID_POSITION") position_ = 0;
    if (complete_ || reason != "JOB_NOT_FOUND") return;
    lost_ = why;
  }
  task_.RunNow();
}

void DeploymentFollower::SetProblem(const absl::Status& why) {
  const std::string text(why.message());
  if (text == problem_) return;
  problem_ = text;
  Log(LogLevel::kWarning, "the root relay does not accept a deployment yet; trying again",
      {{"deployment", deployment_}, {"error", why}});
  const absl::Status stored = parts_.store.SetProblem(deployment_, text);
  if (stored.ok() || absl::IsNotFound(stored)) return;
  LogLimited(LogLevel::kError, "cannot store the problem of a deployment", "",
             {{"deployment", deployment_}, {"error", stored}});
}

void DeploymentFollower::Fail(const absl::Status& why) {
  EndOrRetry(parts_.store.Fail(deployment_, std::string(why.message()), parts_.clock.Now()));
}

void DeploymentFollower::EndOrRetry(const absl::Status& stored) {
  if (!stored.ok() && !absl::IsNotFound(stored)) {
    LogLimited(LogLevel::kError, "cannot store the end of a deployment; trying again", "",
               {{"deployment", deployment_}, {"error", stored}});
    return task_.RunAfter(kDiskRetry);
  }
  is_over_ = true;
  ended_();
}

}  // namespace muster
