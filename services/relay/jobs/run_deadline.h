// When the root relay ends a target that started its command.
#ifndef MUSTER_SERVICES_RELAY_JOBS_RUN_DEADLINE_H_
#define MUSTER_SERVICES_RELAY_JOBS_RUN_DEADLINE_H_

#include <algorithm>
#include <utility>

#include "absl/time/time.h"

namespace muster {

// One moment, on both clocks.
struct Instant {
  absl::Time wall;
  absl::Duration monotonic;
};

// The times are monotonic: a step of the wall clock ends no command. Not thread-safe.
class RunDeadline {
 public:
  // A record needs this time to reach the root relay after a limit.
  static constexpr absl::Duration kAnswerGrace = absl::Seconds(10);
  // The maximum delay of the last record of a node that sends all the time.
  static constexpr absl::Duration kMaxDelay = absl::Hours(1);

  // The node sent a record.
  void NoteRecord() { has_news_ = true; }

  // Call it for a started target, and before the next two. `begin_until`: the node started the
  // command at this time or earlier.
  void Update(const Instant& now, absl::Time begin_until, absl::Duration time_limit) {
    if (end_ == absl::InfiniteDuration()) {
      // After a restart, the limit may be over when no node is attached yet.
      const absl::Duration left = std::min(begin_until - now.wall, absl::ZeroDuration());
      end_ = now.monotonic + std::max(left + time_limit, absl::ZeroDuration()) + kAnswerGrace;
    }
    if (!std::exchange(has_news_, false)) return;
    sending_end_ = std::min(now.monotonic + kAnswerGrace, end_ + kMaxDelay);
  }
  // Returns when the target is ended if its node is not attached.
  absl::Duration end() const { return end_; }
  // Returns the same for an attached node: the records of a slow link may arrive late.
  absl::Duration attached_end() const { return std::max(end_, sending_end_); }

 private:
  bool has_news_ = false;  // since the last Update
  absl::Duration end_ = absl::InfiniteDuration();
  absl::Duration sending_end_ = -absl::InfiniteDuration();
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_RUN_DEADLINE_H_
