#include "services/client/beat_schedule.h"

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

constexpr absl::Duration kReconnectLeast = absl::Seconds(1);
constexpr absl::Duration kReconnectFirst = absl::Seconds(8);
constexpr absl::Duration kReconnectMost = absl::Seconds(45);
constexpr absl::Duration kLongestAsked = absl::Minutes(10);

}  // namespace

void BeatSchedule::Opened(absl::Duration now) {
  sent_ = -absl::InfiniteDuration();
  unanswered_since_ = now;  // also gives up a connection that is never established
  probed_ = false;
}

void BeatSchedule::Sent(absl::Duration now, bool changed) {
  sent_ = now;
  if (changed) change_sent_ = now;
  unanswered_since_ = std::min(unanswered_since_, now);
  spread_ = std::uniform_real_distribution<double>(1 - kSpread, 1 + kSpread)(random_);
  probed_ = false;
}

void BeatSchedule::Answered(std::optional<absl::Duration> interval) {
  if (interval) interval_ = std::clamp(*interval, kShortest, kLongest);
  unanswered_since_ = absl::InfiniteDuration();
}

absl::Duration BeatSchedule::Due(bool changed) const {
  if (probed_) return -absl::InfiniteDuration();
  const absl::Duration regular = sent_ + interval_ * spread_;
  return changed ? std::min(regular, change_sent_ + kChangeGap) : regular;
}

absl::Duration BeatSchedule::GiveUp() const {
  return unanswered_since_ + std::max(kAnswerLimit, interval_ * kAnswerIntervals);
}

absl::Duration ReconnectWait::Between(absl::Duration low, absl::Duration high) {
  return low + (high - low) * std::uniform_real_distribution<double>(0, 1)(random_);
}

absl::Duration ReconnectWait::Next(std::optional<absl::Duration> asked) {
  const absl::Duration ceiling =
      std::min(kReconnectMost, kReconnectFirst * (1 << std::min(tries_++, 10)));
  const absl::Duration wait = Between(kReconnectLeast, ceiling);
  if (!asked) return wait;
  const absl::Duration least = std::clamp(*asked, kReconnectLeast, kLongestAsked);
  return least + std::min(wait, least);
}

absl::Duration ReconnectWait::NextUnserved() {
  const absl::Duration ceiling =
      std::min(kLongestAsked, kReconnectFirst * (1 << std::min(tries_++, 10)));
  return Between(ceiling / 2, ceiling);
}

}  // namespace muster::client
