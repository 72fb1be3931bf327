#include "services/aggregator/verdicts/verdict_follower.h"

#include <utility>

#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

// The status service sends a message every few seconds.
constexpr absl::Duration kSilence = absl::Seconds(15);
// Verdicts that are executed at the same time: enough to share commits, few enough for the queue.
constexpr size_t kMaxPending = 256;

}  // namespace

VerdictFollower::VerdictFollower(GetChannel status, Verdicts& verdicts, const Clock& clock,
                                 TimerService& timers, Executor& executor)
    : verdicts_(verdicts), follower_(MakeOptions(std::move(status)), clock, timers, executor) {}

VerdictFollower::~VerdictFollower() { Stop(); }

VerdictFollower::Follower::Options VerdictFollower::MakeOptions(GetChannel status) {
  Follower::Options options;
  options.channel = std::move(status);
  options.method = "/muster.v1.VerdictService/FollowVerdicts";
  options.max_pending = kMaxPending;
  options.request = [] { return v1::FollowVerdictsRequest(); };
  options.handle = [this](const v1::Verdict& verdict, Verdicts::Done done) {
    Handle(verdict, std::move(done));
  };
  options.ended = [this](const absl::Status& why, bool received) { Ended(why, received); };
  return options;
}

void VerdictFollower::Stop() { follower_.Stop(); }

bool VerdictFollower::connected() const {
  return follower_.receiving() && follower_.silence() < kSilence;
}

void VerdictFollower::Ended(const absl::Status& why, bool received) {
  if (received) logged_.reset();
  const std::string reason = ReasonOf(why);
  if (reason == logged_) return;  // logged once, however long it lasts
  Log(LogLevel::kWarning, "no verdicts from the status service: lost pairs are not timed out",
      {{"error", why}});
  logged_ = reason;
}

void VerdictFollower::Handle(const v1::Verdict& verdict, Verdicts::Done done) {
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
