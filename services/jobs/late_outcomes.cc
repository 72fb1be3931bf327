#include "services/jobs/late_outcomes.h"

#include <chrono>

#include "muster/v1/jobs.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/rpc/call_later.h"

namespace muster {
namespace {

constexpr absl::Duration kEvery = absl::Seconds(30);
constexpr size_t kAtOnce = 50;
constexpr std::chrono::seconds kAnswerWithin(30);

}  // namespace

LateOutcomes::LateOutcomes(Parts parts)
    : parts_(std::move(parts)), task_(parts_.timers, parts_.executor, [this] { Step(); }) {
  answer_->SetTask(&task_);
}

LateOutcomes::~LateOutcomes() {
  answer_->SetTask(nullptr);
  task_.Stop();
}

void LateOutcomes::Step() {
  if (asked_) {
    const auto answer = answer_->Take();
    if (!answer) return;
    Handle(*std::exchange(asked_, std::nullopt), answer->first, answer->second);
  } else {
    auto list = parts_.deployments.List(after_, kAtOnce);
    if (list.ok()) {
      waiting_.assign(list->begin(), list->end());
    } else {
      LogLimited(LogLevel::kError, "cannot list the deployments without all outcomes", "",
                 {{"error", list.status()}});
    }
    after_ = waiting_.size() < kAtOnce ? 0 : waiting_.back().id;
  }
  waiting_.empty() ? task_.RunAfter(kEvery) : Ask();
}

void LateOutcomes::Ask() {
  const auto channel = parts_.relay();
  if (channel == nullptr) {
    waiting_.clear();
    return task_.RunAfter(kEvery);
  }
  asked_ = std::move(waiting_.front());
  waiting_.pop_front();
  v1::GetJobRequest request;
  request.set_job(asked_->job);
  CallLater<v1::JobService, v1::GetJobRequest, v1::Job>(
      channel, &v1::JobService::Stub::async::GetJob, std::move(request), kAnswerWithin,
      [answer = answer_](const absl::Status& status, const v1::Job& job) {
        answer->Set({status, job});
      });
}

void LateOutcomes::Handle(const UnsettledDeployment& asked, const absl::Status& status,
                          const v1::Job& job) {
  absl::Status stored;
  if (absl::IsNotFound(status)) {
    stored = parts_.deployments.Settle(asked.deployment);
  } else if (status.ok() && job.late_time().SerializeAsString() != asked.late_time) {
    stored = parts_.deployments.Reopen(asked.deployment);
    if (stored.ok()) parts_.follow({asked.deployment, asked.creator, asked.cancelled});
  }
  if (stored.ok() || absl::IsNotFound(stored)) return;
  LogLimited(LogLevel::kError, "cannot store that a deployment has a late outcome; trying again",
             "", {{"deployment", asked.deployment}, {"error", stored}});
}

}  // namespace muster
