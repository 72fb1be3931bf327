// What an unfinished pair is at, or why it lags: decided here, from facts alone.
#ifndef MUSTER_SERVICES_STATUS_BOARD_REASONS_H_
#define MUSTER_SERVICES_STATUS_BOARD_REASONS_H_

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "muster/v1/status.pb.h"
#include "services/status/heartbeats/sender.h"

namespace muster {

// What is known of a pair. Times are monotonic.
struct PairFacts {
  v1::Outcome outcome = v1::OUTCOME_PENDING;
  // Anything was ever heard of it: a heartbeat or progress.
  bool heard_of = false;

  // Of who beats for it. Nobody does for a pair that an old sidecar delivers: then silence says
  // nothing.
  bool has_sender = false;
  v1::Presence presence = v1::PRESENCE_UNSPECIFIED;
  absl::Duration presence_since;
  absl::Duration last_seen;
  Evidence evidence = Evidence::kNone;
  const RelayState* relay = nullptr;  // by which it beats
  bool doubted = false;
  // The process was started anew, and the new one has not spoken of this pair; since when.
  bool abandoned = false;
  absl::Duration abandoned_at;
  bool duplicate_agent = false;

  v1::Phase phase = v1::PHASE_UNSPECIFIED;
  std::string_view message;          // of the phase
  const v1::Fault* fault = nullptr;  // null: none
  std::string_view error;            // of the outcome

  bool has_progress = false;
  absl::Duration moved_at;     // when its progress last changed
  absl::Duration stuck_after;  // standing still for so long is too long
  bool slow = false;

  // Since when nothing is heard of the pair, if it is silent.
  absl::Duration silent_since() const { return abandoned ? abandoned_at : last_seen; }
};

// Standing still for longer than this many of the plugin's slow steps (p95), and than the least, is
// too long.
inline constexpr int kStuckSteps = 3;
inline constexpr absl::Duration kStuckAtLeast = absl::Minutes(2);

v1::Reason Judge(const PairFacts& facts, absl::Duration now);

// Whether somebody should look at a pair for this reason: an order from the worst, 0 for none.
int Severity(v1::Reason reason);

// "CRASHED".
std::string_view ReasonName(v1::Reason reason);

// What a run will do without anybody's doing. Wall times.
struct Outlook {
  bool ended = false;
  absl::Time deadline = absl::InfiniteFuture();
  // Until when somebody of the plan has to be heard of; the infinite past if that does not count.
  absl::Time start_by = absl::InfinitePast();
  absl::Duration lost_after = absl::InfiniteDuration();
  bool fail_fast = false;
};

// One moment on both clocks, to show monotonic times.
struct Moment {
  absl::Time wall;
  absl::Duration monotonic;

  absl::Time WallOf(absl::Duration at) const { return wall - (monotonic - at); }
};

// What is known, in words. Absolute times, since nobody tells a reader when only the age of
// something changes.
std::string Detail(v1::Reason reason, const PairFacts& facts, const Moment& now);

// What happens next without anybody's doing.
std::string NextStep(v1::Reason reason, const PairFacts& facts, const Outlook& outlook,
                     const Moment& now);

// "12:03:10 UTC", with the date before it if it is half a day or more from now.
std::string ClockTime(absl::Time time, absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_REASONS_H_
