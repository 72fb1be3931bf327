#include "services/aggregator/verdicts/verdict_follower.h"

#include <optional>
#include <string>
#include <utility>

#include "services/common/base/backoff.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

// The status service says that it lives every few seconds.
constexpr absl::Duration kSilence = absl::Seconds(15);
// Verdicts that are carried out at a time: enough to share commits, few enough for the queue.
constexpr int kMaxUnderWay = 256;

// Counts what is under way; the first failure is kept. Thread-safe.
class UnderWay {
 public:
  // Waits for room. False after a failure: then nothing more is to be begun.
  bool Begin() {
    MutexLock lock(mutex_);
    while (count_ >= kMaxUnderWay) changed_.Wait(mutex_);
    if (!failure_.ok()) return false;
    ++count_;
    return true;
  }

  // Under the lock to its end: whoever waits for the last one may take this object away.
  void End(const absl::Status& status) {
    MutexLock lock(mutex_);
    --count_;
    failure_.Update(status);
    changed_.NotifyAll();
  }

  // Waits for all; the first failure.
  absl::Status Join() {
    MutexLock lock(mutex_);
    while (count_ != 0) changed_.Wait(mutex_);
    return failure_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

VerdictFollower::VerdictFollower(std::shared_ptr<grpc::Channel> channel, Verdicts& verdicts,
                                 const Clock& clock)
    : stub_(v1::VerdictService::NewStub(std::move(channel))),
      verdicts_(verdicts),
      clock_(clock),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

VerdictFollower::~VerdictFollower() { Stop(); }

void VerdictFollower::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

bool VerdictFollower::connected() const {
  const int64_t heard = heard_at_;
  return heard != 0 && clock_.MonotonicNow() - absl::Nanoseconds(heard) < kSilence;
}

void VerdictFollower::Run(const std::stop_token& stop) {
  Backoff backoff;
  std::optional<std::string> reported;  // the same trouble is told once, however long it lasts
  while (!stop.stop_requested()) {
    const absl::Status status = FollowOnce(stop);
    if (stop.stop_requested()) return;
    if (heard_at_.exchange(0) != 0) {
      backoff.Reset();
      reported.reset();
    }
    if (const std::string trouble = ReasonOf(status); trouble != reported) {
      Log(LogLevel::kWarning,
          "disconnected from the status service: missing heartbeats have no effect",
          {{"error", status}});
      reported = trouble;
    }
    if (!WaitFor(backoff.Next(RetryAfterOf(status)), stop)) return;
  }
}

absl::Status VerdictFollower::FollowOnce(const std::stop_token& stop) {
  grpc::ClientContext context;
  const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
  const auto stream = stub_->FollowVerdicts(&context, v1::FollowVerdictsRequest());
  UnderWay under_way;
  v1::Verdict verdict;
  while (stream->Read(&verdict)) {
    heard_at_ = absl::ToInt64Nanoseconds(clock_.MonotonicNow());
    if (!under_way.Begin()) {
      context.TryCancel();
      break;
    }
    Take(verdict, [&under_way](const absl::Status& status) { under_way.End(status); });
  }
  const absl::Status ended = FromGrpc(stream->Finish());
  const absl::Status carried_out = under_way.Join();
  return carried_out.ok() ? ended : carried_out;
}

void VerdictFollower::Take(const v1::Verdict& verdict, Verdicts::Done done) {
  switch (verdict.verdict_case()) {
    case v1::Verdict::kLost: {
      const v1::Verdict::Lost& lost = verdict.lost();
      return verdicts_.Lose(
          {lost.key().run(), lost.key().plugin(), lost.key().node()}, lost.reason(),
          lost.has_since() ? FromProto(lost.since()) : absl::InfinitePast(), std::move(done));
    }
    case v1::Verdict::kStartGraceExpired:
      return verdicts_.StartGraceExpired(verdict.start_grace_expired().run(),
                                         verdict.start_grace_expired().reason(), std::move(done));
    case v1::Verdict::kHeartbeat:
    case v1::Verdict::VERDICT_NOT_SET:
      break;
  }
  done(absl::OkStatus());
}

}  // namespace muster
