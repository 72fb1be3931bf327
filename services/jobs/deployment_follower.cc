#include "services/jobs/deployment_follower.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/v1/jobs.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/errors/jobs.h"
#include "services/common/rpc/call_later.h"
#include "services/common/templates/resolved_deployment.h"
#include "services/jobs/deployment_submission.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kAnswerWithin(30);
// After this time without an answer the problem reports it.
constexpr absl::Duration kLate = absl::Seconds(3);
constexpr BackoffOptions kBackoff = {absl::Milliseconds(200), absl::Seconds(10)};
constexpr absl::Duration kDiskRetry = absl::Seconds(1);

// Returns whether the relay does not accept the command any more, but may have done so before.
bool IsTooLate(const absl::Status& answer) {
  const std::string reason = ReasonOf(answer);
  return reason == "COMMAND_EXPIRED" || reason == "COMMAND_REFUSED";
}

// Returns whether the relay would refuse the command again, and did not accept it before.
bool IsFinal(const absl::Status& answer) {
  return absl::IsInvalidArgument(answer) || absl::IsAlreadyExists(answer) ||
         absl::IsNotFound(answer);
}

// Returns whether the relay, which has not got the command, will refuse it.
bool WillNotRun(const absl::Status& cancelled) {
  return IsFinal(cancelled) || IsTooLate(cancelled) || ReasonOf(cancelled) == "NOT_A_DEPLOYMENT";
}

// Returns nothing if this version of the program does not accept the documents any more.
std::optional<ResolvedDeployment> ContentOf(const v1::CreateDeploymentRequest& request) {
  v1::Command command;
  if (!command.ParseFromString(request.command().command())) return std::nullopt;
  auto resolved = ResolveDeployment(command.container().deployment());
  if (!resolved.ok()) return std::nullopt;
  return *std::move(resolved);
}

}  // namespace

DeploymentFollower::DeploymentFollower(Parts parts, std::string deployment,
                                       std::function<void()> ended)
    : parts_(std::move(parts)),
      deployment_(std::move(deployment)),
      ended_(std::move(ended)),
      backoff_(kBackoff),
      task_(parts_.timers, parts_.executor, [this] { Step(); }) {
  answer_->SetTask(&task_);
  task_.RunNow();
}

DeploymentFollower::~DeploymentFollower() {
  answer_->SetTask(nullptr);
  task_.Stop();
  watch_.reset();
}

void DeploymentFollower::Step() {
  if (is_over_ || HandleEndOfWatch()) return;
  if (call_ != Call::kNone) return HandleCall();
  const auto open = parts_.store.GetOpen(deployment_);
  if (absl::IsNotFound(open.status())) return EndOrRetry(absl::OkStatus());
  if (!open.ok()) {
    LogLimited(LogLevel::kError, "cannot read a deployment; trying again", "",
               {{"deployment", deployment_}, {"error", open.status()}});
    return task_.RunAfter(kDiskRetry);
  }
  if (job_.empty()) {
    job_ = open->message.job();
    problem_ = open->message.problem();
    pending_ = open->message.state() == v1::DEPLOYMENT_STATE_PENDING;
    content_ = ContentOf(open->request);
    MutexLock lock(mutex_);
    position_ = open->position;
  }
  BeginNext(*open);
}

bool DeploymentFollower::HandleEndOfWatch() {
  if (watch_ == nullptr) return false;
  std::optional<v1::Job> complete;
  std::optional<absl::Status> lost;
  {
    MutexLock lock(mutex_);
    complete = complete_;
    lost = lost_;
  }
  if (complete) {
    EndOrRetry(parts_.store.EndWithJob(deployment_, *complete));
  } else if (lost) {
    // A relay that refused the command, and does not know its job, never had it.
    const bool never_sent = pending_ && !refused_.ok() && ReasonOf(*lost) == "JOB_NOT_FOUND";
    Fail(refused_.ok() ? *lost : refused_, never_sent);
  }
  return complete || lost;
}

void DeploymentFollower::BeginNext(const OpenDeployment& open) {
  if (!pending_ && watch_ == nullptr) Watch();
  if (!open.message.cancel_requested_by().empty()) {
    if (!cancelled_) Cancel(open);
    return;
  }
  if (watch_ != nullptr) return;
  if (!parts_.is_revoked(open.message.created_by())) return Submit(open);
  refused_ = errors::CommandRefused(
      absl::StrCat("its creator, ", open.message.created_by(), ", was revoked"));
  if (!open.attempted) return Fail(refused_, true);
  SetProblem(std::string(refused_.message()));
  Watch();  // the relay may have accepted it before
}

std::shared_ptr<grpc::Channel> DeploymentFollower::BeginCall(Call call) {
  const auto channel = parts_.relay();
  if (channel == nullptr) {
    Retry(absl::UnavailableError("no connection to the root relay"));
    return nullptr;
  }
  call_ = call;
  channel_ = channel;
  called_at_ = parts_.clock.MonotonicNow();
  task_.RunAfter(kLate);
  return channel;
}

std::function<void(absl::Status, v1::Job)> DeploymentFollower::OnAnswer() const {
  return [answer = answer_](const absl::Status& status, const v1::Job&) { answer->Set(status); };
}

void DeploymentFollower::Submit(const OpenDeployment& open) {
  if (!begun_) {
    const absl::Status stored = parts_.store.BeginSubmission(deployment_);
    if (absl::IsNotFound(stored)) return EndOrRetry(stored);
    if (!stored.ok()) {
      LogLimited(LogLevel::kError, "cannot store that a deployment is submitted; trying again", "",
                 {{"deployment", deployment_}, {"error", stored}});
      return task_.RunAfter(kDiskRetry);
    }
    begun_ = true;
    problem_.clear();
  }
  const auto channel = BeginCall(Call::kSubmit);
  if (channel == nullptr) return;
  CallLater<v1::JobService, v1::SubmitJobRequest, v1::Job>(
      channel, &v1::JobService::Stub::async::SubmitJob, SubmissionOf(open.request), kAnswerWithin,
      OnAnswer());
}

void DeploymentFollower::Cancel(const OpenDeployment& open) {
  v1::CancelJobRequest request;
  request.set_job(job_);
  request.set_actor(open.message.cancel_requested_by());
  if (pending_) *request.mutable_submission() = SubmissionOf(open.request);
  const auto channel = BeginCall(Call::kCancel);
  if (channel == nullptr) return;
  CallLater<v1::JobService, v1::CancelJobRequest, v1::Job>(
      channel, &v1::JobService::Stub::async::CancelJob, std::move(request), kAnswerWithin,
      OnAnswer());
}

void DeploymentFollower::HandleCall() {
  if (const auto status = answer_->Take()) {
    const Call call = std::exchange(call_, Call::kNone);
    channel_.reset();
    return call == Call::kSubmit ? HandleSubmitted(*status) : HandleCancelled(*status);
  }
  if (parts_.clock.MonotonicNow() - called_at_ >= kLate) {
    // A refused connection has ended the call before.
    SetProblem(channel_->GetState(false) == GRPC_CHANNEL_READY
                   ? "the root relay has not answered yet"
                   : "the root relay does not answer connections");
  }
}

void DeploymentFollower::HandleSubmitted(const absl::Status& status) {
  if (status.ok() || IsTooLate(status)) {
    refused_ = status;
    pending_ = !status.ok();
    if (!pending_) problem_.clear();  // the first response of the watch removes it
    Watch();
    return task_.RunNow();  // it may have been cancelled
  }
  if (IsFinal(status)) return Fail(status, true);
  Retry(status);
}

void DeploymentFollower::HandleCancelled(const absl::Status& status) {
  if (status.ok()) {
    cancelled_ = true;
    pending_ = false;
    refused_ = absl::OkStatus();
    return task_.RunNow();
  }
  if (pending_ && WillNotRun(status)) {
    return EndOrRetry(parts_.store.EndCancelled(deployment_, parts_.clock.Now()));
  }
  Retry(status);
}

void DeploymentFollower::Retry(const absl::Status& why) {
  SetProblem(std::string(why.message()));
  task_.RunAfter(backoff_.Next(RetryAfterOf(why)));
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
  const absl::Status stored =
      parts_.store.AddRecords(deployment_, response, content_ ? &*content_ : nullptr);
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

void DeploymentFollower::SetProblem(const std::string& problem) {
  if (problem == problem_) return;
  problem_ = problem;
  Log(LogLevel::kWarning, "the root relay has not accepted a deployment or its cancellation yet",
      {{"deployment", deployment_}, {"problem", problem}});
  const absl::Status stored = parts_.store.SetProblem(deployment_, problem);
  if (stored.ok() || absl::IsNotFound(stored)) return;
  LogLimited(LogLevel::kError, "cannot store the problem of a deployment", "",
             {{"deployment", deployment_}, {"error", stored}});
}

void DeploymentFollower::Fail(const absl::Status& why, bool never_sent) {
  EndOrRetry(
      parts_.store.Fail(deployment_, std::string(why.message()), never_sent, parts_.clock.Now()));
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
