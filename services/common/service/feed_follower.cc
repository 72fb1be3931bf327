#include "services/common/service/feed_follower.h"

#include <utility>

#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"

namespace muster {
namespace {

// The aggregator sends an event every 5 s.
constexpr absl::Duration kSilence = absl::Seconds(15);

}  // namespace

FeedFollower::FeedFollower(GetChannel aggregator,
                           std::function<void(const v1::FollowChangesResponse&)> handle,
                           TimerService& timers, Executor& executor)
    : handle_(std::move(handle)),
      follower_(MakeOptions(std::move(aggregator)), SystemClock(), timers, executor) {}

FeedFollower::~FeedFollower() = default;

FeedFollower::Follower::Options FeedFollower::MakeOptions(GetChannel aggregator) {
  Follower::Options options;
  options.channel = std::move(aggregator);
  options.method = "/muster.v1.ChangeService/FollowChanges";
  options.backoff = {absl::Milliseconds(200), absl::Seconds(10)};
  options.max_pending = 2;  // the next event is read while one is handled
  options.request = [this] { return MakeRequest(); };
  options.handle = [this](const v1::FollowChangesResponse& event, Follower::Done done) {
    if (event.has_snapshot_begin()) {
      feed_ = event.snapshot_begin().feed();
      cursor_.reset();  // it may belong to another feed
    }
    handle_(event);
    if (event.has_cursor()) cursor_ = event.cursor();
    done(absl::OkStatus());
  };
  options.ended = [this](const absl::Status& why, bool) { Ended(why); };
  return options;
}

v1::FollowChangesRequest FeedFollower::MakeRequest() const {
  v1::FollowChangesRequest request;
  if (cursor_) {
    request.set_cursor(*cursor_);
    request.set_feed(feed_);
  }
  return request;
}

bool FeedFollower::connected() const { return follower_.received() && silence() < kSilence; }

void FeedFollower::Ended(const absl::Status& why) {
  if (ReasonOf(why) == "CURSOR_UNKNOWN") cursor_.reset();
  Log(LogLevel::kWarning, "the change feed was interrupted", {{"error", why}});
}

void AddFeedGauges(Metrics& metrics, const std::unique_ptr<FeedFollower>& follower) {
  metrics.AddSampledGauge("muster_feed_connected",
                          "1 while events of the aggregator's feed arrive.",
                          [&follower] { return follower != nullptr && follower->connected(); });
  metrics.AddSampledGauge(
      "muster_feed_silence_seconds",
      "The time since the last message of the aggregator's change feed.",
      [&follower] { return follower == nullptr ? 0 : absl::ToDoubleSeconds(follower->silence()); });
}

}  // namespace muster
