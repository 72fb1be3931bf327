#include "services/status/board/reasons.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "services/common/base/strings.h"
#include "services/common/base/utc_text.h"

namespace muster {
namespace {

bool IsSilent(v1::Presence presence) {
  return presence == v1::PRESENCE_LATE || presence == v1::PRESENCE_SUSPECT ||
         presence == v1::PRESENCE_LOST;
}

// Returns whether the sender closed its connection without a goodbye before this service started,
// or was held up: its presence is unknown since, but the closed connection is a fact.
bool IsClosedBeforeUnknown(const PairFacts& facts) {
  return facts.presence == v1::PRESENCE_UNKNOWN && facts.evidence == Evidence::kClosed;
}

v1::Reason JudgeSilent(const PairFacts& facts) {
  switch (facts.evidence) {
    case Evidence::kClosed:
      return v1::REASON_CRASHED;
    case Evidence::kAcknowledging:
      return v1::REASON_NOT_RESPONDING;
    case Evidence::kUnacknowledged:
      return v1::REASON_NETWORK_LOST;
    case Evidence::kRevoked:
      return v1::REASON_BLOCKED;
    case Evidence::kNone:
      break;
  }
  // Two missing heartbeats alone may be a slow link.
  return facts.presence == v1::PRESENCE_LATE ? v1::REASON_RUNNING : v1::REASON_NOT_RESPONDING;
}

std::string Words(std::string_view text, std::string_view otherwise) {
  return std::string(text.empty() ? otherwise : text);
}

// Returns whether the silence of the sender explains the reason.
bool IsFromSilence(v1::Reason reason, const PairFacts& facts) {
  switch (reason) {
    case v1::REASON_NOT_RESPONDING:
    case v1::REASON_NETWORK_LOST:
    case v1::REASON_SEGMENT_LOST:
      return true;
    case v1::REASON_CRASHED:
      return IsSilent(facts.presence) || IsClosedBeforeUnknown(facts);
    case v1::REASON_RUNNING:
      return IsSilent(facts.presence);
    case v1::REASON_BLOCKED:
      return facts.evidence == Evidence::kRevoked;
    default:
      return false;
  }
}

std::string CauseOfSilence(const PairFacts& facts, const Moment& now) {
  if (facts.doubted && facts.relay != nullptr &&
      (!facts.relay->connected || facts.relay->IsSilent(now.monotonic))) {
    return absl::StrCat("relay ", facts.relay->name, ", which forwards its heartbeats, is ",
                        facts.relay->connected ? "silent too" : "not connected",
                        ", so its state is not known");
  }
  if (facts.doubted) return "many others are silent too, so the fault may be in the network";
  switch (facts.evidence) {
    case Evidence::kClosed:
      return "its connection was closed without a goodbye";
    case Evidence::kAcknowledging:
      return "its machine acknowledges packets";
    case Evidence::kUnacknowledged:
      return "its machine does not acknowledge packets";
    case Evidence::kRevoked:
      return "its certificate was revoked, so its messages are rejected";
    case Evidence::kNone:
      break;
  }
  if (facts.relay != nullptr) {
    return absl::StrCat("relay ", facts.relay->name,
                        " forwards its heartbeats, so the state of its machine is not known");
  }
  return "the state of its connection is not known";
}

std::string BlockedDetail(const PairFacts& facts, const Moment& now) {
  if (facts.fault != nullptr) {
    return absl::StrCat(facts.fault->address(), facts.fault->address().empty() ? "" : ": ",
                        facts.fault->message());
  }
  if (facts.presence == v1::PRESENCE_OFFLINE) {
    const std::string at = ClockTime(now.WallOf(facts.presence_since), now.wall);
    if (facts.relay == nullptr) {
      return absl::StrCat("its agent stopped at ", at, " and has to be started again");
    }
    // An attached agent says goodbye whenever it has no more work.
    return absl::StrCat("its agent ended its work at ", at,
                        "; an attached agent continues when its relay requests the result, "
                        "another one has to be started again");
  }
  return Words(facts.message, "it waits without a stated cause");
}

std::string RunningDetail(const PairFacts& facts) {
  if (facts.presence == v1::PRESENCE_UNKNOWN) {
    return "no heartbeat since the status service started or lost most senders";
  }
  if (facts.duplicate_agent) return "two processes send heartbeats with its identity";
  return std::string(facts.message);
}

// When silence ends in a time-out.
std::string AfterSilence(const PairFacts& facts, const Outlook& outlook, const Moment& now) {
  if (facts.presence == v1::PRESENCE_UNKNOWN && !facts.abandoned) {
    return "the status service waits for its heartbeats before the pair can time out";
  }
  const absl::Time end = now.WallOf(facts.silent_since()) + outlook.lost_after;
  const absl::Time at = std::min(std::max(end, now.wall), outlook.deadline);
  return absl::StrCat(outlook.fail_fast ? "the run fails at " : "becomes timed out at ",
                      ClockTime(at, now.wall),
                      facts.evidence == Evidence::kRevoked ? "" : " unless its heartbeats resume");
}

}  // namespace

v1::Reason Judge(const PairFacts& facts, absl::Duration now) {
  if (facts.outcome == v1::OUTCOME_TIMED_OUT) return v1::REASON_TIMED_OUT;
  if (facts.outcome != v1::OUTCOME_PENDING) return v1::REASON_UNSPECIFIED;
  if (facts.run_ended) return v1::REASON_RUN_ENDED;
  if (!facts.heard_of) return v1::REASON_NOT_STARTED;
  if (facts.has_sender) {
    if (facts.doubted && facts.presence != v1::PRESENCE_ONLINE) return v1::REASON_SEGMENT_LOST;
    if (IsSilent(facts.presence) || facts.evidence == Evidence::kRevoked) return JudgeSilent(facts);
    if (facts.abandoned || IsClosedBeforeUnknown(facts)) return v1::REASON_CRASHED;
    if (facts.presence == v1::PRESENCE_OFFLINE) return v1::REASON_BLOCKED;
  }
  if (facts.fault != nullptr || facts.phase == v1::PHASE_BLOCKED) return v1::REASON_BLOCKED;
  if (facts.phase == v1::PHASE_BACKPRESSURED) return v1::REASON_BACKPRESSURED;
  if (facts.phase == v1::PHASE_DELIVERING) return v1::REASON_RUNNING;
  if (facts.has_sender && facts.presence == v1::PRESENCE_ONLINE && facts.has_progress &&
      now - facts.moved_at >= facts.stuck_after) {
    return v1::REASON_STUCK;
  }
  return facts.slow ? v1::REASON_SLOW : v1::REASON_RUNNING;
}

int Severity(v1::Reason reason) {
  switch (reason) {
    case v1::REASON_CRASHED:
      return 8;
    case v1::REASON_NETWORK_LOST:
      return 7;
    case v1::REASON_NOT_RESPONDING:
      return 6;
    case v1::REASON_STUCK:
      return 5;
    case v1::REASON_BLOCKED:
      return 4;
    case v1::REASON_SEGMENT_LOST:
      return 3;
    case v1::REASON_BACKPRESSURED:
      return 2;
    case v1::REASON_SLOW:
      return 1;
    default:
      return 0;
  }
}

std::string_view ReasonName(v1::Reason reason) {
  return std::string_view(v1::Reason_Name(reason)).substr(sizeof("REASON_") - 1);
}

std::string Detail(v1::Reason reason, const PairFacts& facts, const Moment& now) {
  std::string cause = Cause(reason, facts, now);
  if (!IsFromSilence(reason, facts)) return cause;
  return absl::StrCat("no heartbeat since ", ClockTime(now.WallOf(facts.last_seen), now.wall), "; ",
                      cause);
}

std::string Cause(v1::Reason reason, const PairFacts& facts, const Moment& now) {
  if (IsFromSilence(reason, facts)) return CauseOfSilence(facts, now);
  switch (reason) {
    case v1::REASON_NOT_STARTED:
      return "no heartbeat was received yet";
    case v1::REASON_RUNNING:
      return RunningDetail(facts);
    case v1::REASON_SLOW:
      return "its progress is slower than that of 90 % of the other nodes";
    case v1::REASON_STUCK:
      return absl::StrCat("heartbeats arrive, but its progress has not changed since ",
                          ClockTime(now.WallOf(facts.moved_at), now.wall));
    case v1::REASON_CRASHED:
      return "its process restarted, and the new process does not work on it";
    case v1::REASON_BLOCKED:
      return BlockedDetail(facts, now);
    case v1::REASON_BACKPRESSURED:
      return Words(facts.message, "it waits because a service asked for it");
    case v1::REASON_TIMED_OUT:
      return Words(facts.error, "its deadline passed");
    case v1::REASON_RUN_ENDED:
      return "the run ended before the pair had an outcome";
    default:
      return "";
  }
}

std::string NextStep(v1::Reason reason, const PairFacts& facts, const Outlook& outlook,
                     const Moment& now) {
  if (outlook.ended || reason == v1::REASON_UNSPECIFIED || reason == v1::REASON_RUN_ENDED) {
    return "";
  }
  const std::string deadline =
      outlook.deadline == absl::InfiniteFuture()
          ? "stays pending"
          : absl::StrCat("becomes timed out at ", ClockTime(outlook.deadline, now.wall),
                         " unless its result arrives");
  switch (reason) {
    case v1::REASON_NOT_STARTED:
      if (outlook.start_by == absl::InfinitePast()) return deadline;
      return absl::StrCat("the run fails at ", ClockTime(outlook.start_by, now.wall),
                          " unless a node of its plan sends a heartbeat");
    case v1::REASON_NOT_RESPONDING:
    case v1::REASON_NETWORK_LOST:
    case v1::REASON_CRASHED:
      return AfterSilence(facts, outlook, now);
    case v1::REASON_SEGMENT_LOST:
      return "no pair times out for silence while the status service may have lost its own "
             "connection";
    case v1::REASON_BLOCKED:
      if (facts.presence == v1::PRESENCE_OFFLINE || facts.evidence == Evidence::kRevoked) {
        return AfterSilence(facts, outlook, now);
      }
      return absl::StrCat("continues automatically once that is resolved; ", deadline);
    case v1::REASON_BACKPRESSURED:
      return absl::StrCat("continues automatically when the service has capacity; ", deadline);
    case v1::REASON_TIMED_OUT:
      return "a genuine result still replaces this until the run is sealed";
    default:
      return deadline;
  }
}

std::string ClockTime(absl::Time time, absl::Time now) {
  if (time == absl::InfiniteFuture()) return "an unknown time";
  const absl::Duration away = time > now ? time - now : now - time;
  if (away >= absl::Hours(12)) {
    return UtcText(time);
  }
  // A hundred thousand of these belong to one answer: nothing of the calendar is asked.
  const int64_t second = ((absl::ToUnixSeconds(time) % 86'400) + 86'400) % 86'400;
  return absl::StrFormat("%02d:%02d:%02d UTC", second / 3600, second / 60 % 60, second % 60);
}

}  // namespace muster
