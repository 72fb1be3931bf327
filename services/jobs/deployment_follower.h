// Submits the command of one deployment, and follows its job.
#ifndef MUSTER_SERVICES_JOBS_DEPLOYMENT_FOLLOWER_H_
#define MUSTER_SERVICES_JOBS_DEPLOYMENT_FOLLOWER_H_

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/common/rpc/service_channel.h"
#include "services/common/rpc/task_answer.h"
#include "services/common/service/stream_follower.h"
#include "services/common/templates/resolved_deployment.h"
#include "services/jobs/deployment_store.h"

namespace muster {

// The root relay gets the command until it accepts or refuses it: the job's id makes a repeated
// call harmless. Then the records of the job are stored as they arrive, from the stored position
// on.
//
// A command that the relay refuses because of its time or its signer may have been accepted before,
// by a call whose answer was lost: only a relay that does not know the job proves that it did not
// run.
//
// A cancelled deployment is not submitted any more. Its job is cancelled at the root relay, until
// the relay answers. A submission without an answer may still arrive there: the relay also gets its
// content, and stores a job that it does not have as cancelled.
class DeploymentFollower {
 public:
  // The references outlive the follower.
  struct Parts {
    DeploymentStore& store;
    GetChannel relay;  // the root relay
    // Returns whether the creator (a URI) was revoked. Must not block.
    std::function<bool(const std::string& creator)> is_revoked;
    const Clock& clock;
    TimerService& timers;
    Executor& executor;  // tasks wait for the disk
  };

  // Begins. Calls `ended` once, from a task of the executor, when the deployment has ended. `ended`
  // must not destroy the follower.
  DeploymentFollower(Parts parts, std::string deployment, std::function<void()> ended);

  // Stops: cancels the calls, and waits for its tasks. `ended` is not called any more.
  ~DeploymentFollower();

  // The deployment was cancelled, or its creator was revoked. Must not be called from `ended`.
  void Wake() { task_.RunNow(); }

 private:
  using Follower = StreamFollower<v1::WatchJobRequest, v1::WatchJobResponse>;

  enum class Call { kNone, kSubmit, kCancel };

  // The task.
  void Step();
  // Returns whether the job has ended, or cannot be watched.
  bool HandleEndOfWatch();
  void HandleCall();
  void BeginNext(const OpenDeployment& open);
  void Submit(const OpenDeployment& open);
  void Cancel(const OpenDeployment& open);
  // Returns the channel for this call; null if there is none: the call is made later.
  std::shared_ptr<grpc::Channel> BeginCall(Call call);
  std::function<void(absl::Status, v1::Job)> OnAnswer() const;
  void HandleSubmitted(const absl::Status& status);
  void HandleCancelled(const absl::Status& status);
  void Retry(const absl::Status& why);
  void Watch();
  void HandleResponse(const v1::WatchJobResponse& response, Follower::Done done);
  void HandleWatchEnd(const absl::Status& why);
  void SetProblem(const std::string& problem);
  // `never_sent`: the root relay never had the command.
  void Fail(const absl::Status& why, bool never_sent);
  // Ends the follower if `stored` is OK or the deployment has ended; otherwise tries again later.
  void EndOrRetry(const absl::Status& stored);

  const Parts parts_;
  const std::string deployment_;
  const std::function<void()> ended_;
  const std::shared_ptr<TaskAnswer<absl::Status>> answer_ =
      std::make_shared<TaskAnswer<absl::Status>>();
  // Used by the task.
  Backoff backoff_;
  std::string job_;
  std::string problem_;  // as stored
  Call call_ = Call::kNone;
  std::shared_ptr<grpc::Channel> channel_;  // of the call
  absl::Duration called_at_;                // monotonic
  bool pending_ = true;                     // the relay has not answered that it has the job
  bool begun_ = false;                      // BeginSubmission is stored
  bool cancelled_ = false;                  // the relay has answered the cancellation
  absl::Status refused_;  // why the command is not accepted, while it is not known if it ran
  bool is_over_ = false;
  std::optional<ResolvedDeployment> content_;  // set before the watch, which reads it
  Mutex mutex_;
  std::optional<v1::Job> complete_ ABSL_GUARDED_BY(mutex_);   // all records are stored
  std::optional<absl::Status> lost_ ABSL_GUARDED_BY(mutex_);  // why the job cannot be watched
  int64_t position_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<Follower> watch_;  // made by the task
  ScheduledTask task_;               // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_DEPLOYMENT_FOLLOWER_H_
