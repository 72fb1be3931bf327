// The reason of a pending pair, as a pure function of its facts.
#ifndef MUSTER_SERVICES_STATUS_BOARD_REASONS_H_
#define MUSTER_SERVICES_STATUS_BOARD_REASONS_H_

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "muster/v1/status.pb.h"
#include "services/status/heartbeats/sender.h"

namespace muster {

// The facts about a pair. Times are monotonic.
struct PairFacts {
  v1::Outcome outcome = v1::OUTCOME_PENDING;
  bool run_ended = false;
  // A heartbeat or progress for it has arrived.
  bool heard_of = false;

  // The sender of its heartbeats. A pair that an old sidecar delivers has none, and its silence has
  // no meaning.
  bool has_sender = false;
  v1::Presence presence = v1::PRESENCE_UNSPECIFIED;
  absl::Duration presence_since;
  absl::Duration last_seen;
  Evidence evidence = Evidence::kNone;
  const RelayState* relay = nullptr;  // that forwards its heartbeats
  bool doubted = false;
  // The process was replaced, and the new one has not named this pair.
  bool abandoned = false;
  absl::Duration abandoned_at;
  bool duplicate_agent = false;

  v1::Phase phase = v1::PHASE_UNSPECIFIED;
  std::string_view message;          // of the phase
  const v1::Fault* fault = nullptr;  // null: none
  std::string_view error;            // of the outcome

  bool has_progress = false;
  absl::Duration moved_at;     // when its progress last changed, or its heartbeats resumed
  absl::Duration stuck_after;  // it is stuck after this time without movement
  bool slow = false;

  // Since when the pair is silent, if it is.
  absl::Duration silent_since() const { return abandoned ? abandoned_at : last_seen; }
};

// A pair is stuck after this many of the plugin's slow steps (p95), and not before the least time.
inline constexpr int kStuckSteps = 3;
inline constexpr absl::Duration kStuckAtLeast = absl::Minutes(2);

v1::Reason Judge(const PairFacts& facts, absl::Duration now);

// Returns how much attention the reason needs, the most for the worst; 0 for none.
int Severity(v1::Reason reason);

// "CRASHED".
std::string_view ReasonName(v1::Reason reason);

// The future of a run without any action. Wall times.
struct Outlook {
  bool ended = false;
  bool reported = false;  // an agent of the plan has reported work
  absl::Time deadline = absl::InfiniteFuture();
  // Until when an agent of the plan has to report; the infinite past if none has to before the
  // deadline.
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

// Describes the facts. Contains absolute times, because watchers are not woken when only an age
// changes.
std::string Detail(v1::Reason reason, const PairFacts& facts, const Moment& now);

// Describes the facts without the time of the last heartbeat, for texts that state it separately.
std::string Cause(v1::Reason reason, const PairFacts& facts, const Moment& now);

// Describes what happens next without any action.
std::string NextStep(v1::Reason reason, const PairFacts& facts, const Outlook& outlook,
                     const Moment& now);

// "12:03:10 UTC", with the date before it if it is half a day or more from now.
std::string ClockTime(absl::Time time, absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_REASONS_H_
