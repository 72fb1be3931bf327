#include "services/client/heartbeat_schedule.h"

#include <algorithm>

namespace muster::client {
namespace {

// The lower limit of the server's interval.
constexpr absl::Duration kShortest = absl::Milliseconds(250);
constexpr absl::Duration kLongest = absl::Hours(1);

constexpr absl::Duration kChangeGap = absl::Milliseconds(250);
constexpr double kSpread = 0.2;

constexpr absl::Duration kAnswerLimit = absl::Seconds(30);
constexpr int kAnswerIntervals = 3;

}  // namespace

void HeartbeatSchedule::Opened(absl::Duration now) {
  sent_ = -absl::InfiniteDuration();
  unanswered_since_ = now;  // also gives up a connection that is never established
  probed_ = false;
}

void HeartbeatSchedule::Sent(absl::Duration now, bool changed) {
  sent_ = now;
  if (changed) change_sent_ = now;
  unanswered_since_ = std::min(unanswered_since_, now);
  spread_ = std::uniform_real_distribution<double>(1 - kSpread, 1 + kSpread)(random_);
  probed_ = false;
}

void HeartbeatSchedule::Answered(std::optional<absl::Duration> interval) {
  if (interval) interval_ = std::clamp(*interval, kShortest, kLongest);
  unanswered_since_ = absl::InfiniteDuration();
}

absl::Duration HeartbeatSchedule::Due(bool changed) const {
  if (probed_) return -absl::InfiniteDuration();
  const absl::Duration regular = sent_ + interval_ * spread_;
  return changed ? std::min(regular, change_sent_ + kChangeGap) : regular;
}

absl::Duration HeartbeatSchedule::GiveUp() const {
  return unanswered_since_ + std::max(kAnswerLimit, interval_ * kAnswerIntervals);
}

}  // namespace muster::client
