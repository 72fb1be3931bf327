#include "services/status/board/reasons.h"

#include <set>

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr absl::Duration kNow = absl::Hours(1);

// A pair that works, with a connected agent.
PairFacts Working() {
  PairFacts facts;
  facts.heard_of = true;
  facts.has_sender = true;
  facts.presence = v1::PRESENCE_ONLINE;
  facts.last_seen = kNow - absl::Seconds(4);
  facts.phase = v1::PHASE_WORKING;
  facts.stuck_after = kStuckAtLeast;
  return facts;
}

PairFacts Silent(Evidence evidence, v1::Presence presence = v1::PRESENCE_SUSPECT) {
  PairFacts facts = Working();
  facts.presence = presence;
  facts.last_seen = kNow - absl::Seconds(42);
  facts.evidence = evidence;
  return facts;
}

template <typename Change>
PairFacts With(PairFacts facts, Change change) {
  change(facts);
  return facts;
}

struct Case {
  const char* what;
  PairFacts facts;
  v1::Reason reason;
  const char* detail;  // part of it
  const char* next;    // part of it
};

const v1::Fault& ClockFault() {
  static const v1::Fault fault = [] {
    v1::Fault made;
    made.set_address("root:7440");
    made.set_message("the clock is 3 h ahead");
    return made;
  }();
  return fault;
}

const RelayState& SilentRelay() {
  static RelayState relay("r1");
  relay.connected = true;
  relay.received_at = absl::ToInt64Nanoseconds(kNow - absl::Seconds(42));
  relay.interval = absl::ToInt64Nanoseconds(absl::Seconds(10));
  return relay;
}

std::vector<Case> Cases() {
  const auto standing = [](absl::Duration still) {
    return [still](PairFacts& facts) {
      facts.has_progress = true;
      facts.moved_at = kNow - still;
    };
  };
  const char* const kDeadline = "timed out at 18:00:00 UTC unless its result";
  const char* const kReturns = "timed out at 17:17:28 UTC unless its heartbeats resume";
  return {
      {"finished", With(Working(), [](auto& f) { f.outcome = v1::OUTCOME_GENUINE; }),
       v1::REASON_UNSPECIFIED, "", ""},
      {"an error is final", With(Working(), [](auto& f) { f.outcome = v1::OUTCOME_ERROR; }),
       v1::REASON_UNSPECIFIED, "", ""},
      {"timed out",
       With(Silent(Evidence::kClosed),
            [](auto& f) {
              f.outcome = v1::OUTCOME_TIMED_OUT;
              f.error = "CRASHED: gone";
            }),
       v1::REASON_TIMED_OUT, "CRASHED: gone", "genuine result still replaces"},
      {"the run ended before an outcome",
       With(Silent(Evidence::kClosed), [](auto& f) { f.run_ended = true; }), v1::REASON_RUN_ENDED,
       "the run ended before", ""},
      {"an outcome stays when the run ends",
       With(Working(),
            [](auto& f) {
              f.outcome = v1::OUTCOME_TIMED_OUT;
              f.run_ended = true;
            }),
       v1::REASON_TIMED_OUT, "deadline passed", "genuine result still replaces"},
      {"closed before a restart of the service", Silent(Evidence::kClosed, v1::PRESENCE_UNKNOWN),
       v1::REASON_CRASHED, "closed without a goodbye", "waits for its heartbeats"},
      {"no heartbeat", PairFacts(), v1::REASON_NOT_STARTED, "no heartbeat was received", kDeadline},
      {"works", Working(), v1::REASON_RUNNING, "", kDeadline},
      {"an old sidecar that reported progress",
       With(PairFacts(), [](auto& f) { f.heard_of = true; }), v1::REASON_RUNNING, "", kDeadline},
      {"an old sidecar is never stuck",
       With(PairFacts(),
            [&](auto& f) {
              f.heard_of = true;
              standing(absl::Hours(1))(f);
            }),
       v1::REASON_RUNNING, "", kDeadline},
      {"slow", With(Working(), [](auto& f) { f.slow = true; }), v1::REASON_SLOW, "slower than",
       kDeadline},
      {"stuck", With(Working(), standing(kStuckAtLeast)), v1::REASON_STUCK,
       "has not changed since 17:13:10 UTC", kDeadline},
      {"not stuck yet", With(Working(), standing(kStuckAtLeast - absl::Seconds(1))),
       v1::REASON_RUNNING, "", kDeadline},
      {"a plugin of long steps is not stuck",
       With(Working(),
            [&](auto& f) {
              standing(kStuckAtLeast)(f);
              f.stuck_after = absl::Minutes(30);
            }),
       v1::REASON_RUNNING, "", kDeadline},
      {"stuck is worse than slow",
       With(Working(),
            [&](auto& f) {
              standing(kStuckAtLeast)(f);
              f.slow = true;
            }),
       v1::REASON_STUCK, "has not changed since", kDeadline},
      {"delivers what it counted",
       With(Working(),
            [&](auto& f) {
              standing(absl::Hours(1))(f);
              f.phase = v1::PHASE_DELIVERING;
            }),
       v1::REASON_RUNNING, "", kDeadline},
      {"acknowledging", Silent(Evidence::kAcknowledging), v1::REASON_NOT_RESPONDING,
       "no heartbeat since 17:14:28 UTC; its machine acknowledges", kReturns},
      {"unacknowledged", Silent(Evidence::kUnacknowledged), v1::REASON_NETWORK_LOST,
       "its machine does not acknowledge packets", kReturns},
      {"closed", Silent(Evidence::kClosed, v1::PRESENCE_LATE), v1::REASON_CRASHED,
       "closed without a goodbye", kReturns},
      {"restarted without this pair",
       With(Working(),
            [](auto& f) {
              f.abandoned = true;
              f.abandoned_at = kNow - absl::Seconds(42);
            }),
       v1::REASON_CRASHED, "the new process does not work on it", kReturns},
      {"late and nothing else known", Silent(Evidence::kNone, v1::PRESENCE_LATE),
       v1::REASON_RUNNING, "no heartbeat since", kDeadline},
      {"lost and nothing else known", Silent(Evidence::kNone, v1::PRESENCE_LOST),
       v1::REASON_NOT_RESPONDING, "the state of its connection is not known", kReturns},
      {"many fell silent at once",
       With(Silent(Evidence::kUnacknowledged, v1::PRESENCE_UNKNOWN),
            [](auto& f) { f.doubted = true; }),
       v1::REASON_SEGMENT_LOST, "many others", "may have lost its own connection"},
      {"its relay is silent too",
       With(Silent(Evidence::kNone, v1::PRESENCE_UNKNOWN),
            [](auto& f) {
              f.doubted = true;
              f.relay = &SilentRelay();
            }),
       v1::REASON_SEGMENT_LOST, "relay r1, which forwards its heartbeats, is silent too",
       "may have lost its own connection"},
      {"a sender in a doubted segment", With(Working(), [](auto& f) { f.doubted = true; }),
       v1::REASON_RUNNING, "", kDeadline},
      {"silent since a restart of this service",
       With(Working(), [](auto& f) { f.presence = v1::PRESENCE_UNKNOWN; }), v1::REASON_RUNNING,
       "since the status service started", kDeadline},
      {"said goodbye without a result",
       With(Working(), [](auto& f) { f.presence = v1::PRESENCE_OFFLINE; }), v1::REASON_BLOCKED,
       "its agent stopped", "unless its heartbeats resume"},
      {"a forwarded sender said goodbye without a result",
       With(Working(),
            [](auto& f) {
              f.presence = v1::PRESENCE_OFFLINE;
              f.relay = &SilentRelay();
            }),
       v1::REASON_BLOCKED, "an attached agent continues when its relay requests the result",
       "unless its heartbeats resume"},
      {"blocked",
       With(Working(),
            [](auto& f) {
              f.phase = v1::PHASE_BLOCKED;
              f.message = "waits for a file";
            }),
       v1::REASON_BLOCKED, "waits for a file", "continues automatically"},
      {"a fault before the work",
       With(Working(),
            [](auto& f) {
              f.phase = v1::PHASE_CHECKING;
              f.fault = &ClockFault();
            }),
       v1::REASON_BLOCKED, "root:7440: the clock is 3 h ahead", "continues automatically"},
      {"backpressured", With(Working(), [](auto& f) { f.phase = v1::PHASE_BACKPRESSURED; }),
       v1::REASON_BACKPRESSURED, "a service asked for it", "the service has capacity"},
      {"silence counts before what it said last",
       With(Silent(Evidence::kUnacknowledged), [](auto& f) { f.phase = v1::PHASE_BLOCKED; }),
       v1::REASON_NETWORK_LOST, "no heartbeat", kReturns},
  };
}

// 2025-06-15 17:15:10 UTC.
const Moment kMoment = {absl::FromUnixSeconds(1'750'007'710), kNow};

Outlook Open() {
  Outlook outlook;
  outlook.deadline = absl::FromUnixSeconds(1'750'010'400);  // 18:00:00 UTC
  outlook.lost_after = absl::Minutes(3);
  return outlook;
}

TEST(ReasonsTest, EveryReasonFollowsFromItsFacts) {
  std::set<v1::Reason> met;
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.what);
    const v1::Reason reason = Judge(c.facts, kNow);
    met.insert(reason);
    EXPECT_EQ(v1::Reason_Name(reason), v1::Reason_Name(c.reason));
    const std::string detail = Detail(reason, c.facts, kMoment);
    EXPECT_NE(detail.find(c.detail), std::string::npos) << detail;
    const std::string next = NextStep(reason, c.facts, Open(), kMoment);
    EXPECT_NE(next.find(c.next), std::string::npos) << next;
    EXPECT_EQ(next.empty(), reason == v1::REASON_UNSPECIFIED || reason == v1::REASON_RUN_ENDED);
  }
  for (int reason = v1::Reason_MIN; reason <= v1::Reason_MAX; ++reason) {
    EXPECT_TRUE(met.contains(static_cast<v1::Reason>(reason)))
        << "no case for " << v1::Reason_Name(static_cast<v1::Reason>(reason));
  }
}

TEST(ReasonsTest, NextStepFollowsTheRun) {
  Outlook outlook = Open();
  outlook.start_by = absl::FromUnixSeconds(1'750'007'760);
  EXPECT_EQ(NextStep(v1::REASON_NOT_STARTED, PairFacts(), outlook, kMoment),
            "the run fails at 17:16:00 UTC unless a node of its plan sends a heartbeat");
  outlook.fail_fast = true;
  EXPECT_EQ(NextStep(v1::REASON_CRASHED, Silent(Evidence::kClosed), outlook, kMoment),
            "the run fails at 17:17:28 UTC unless its heartbeats resume");
  outlook.ended = true;
  EXPECT_EQ(NextStep(v1::REASON_CRASHED, Silent(Evidence::kClosed), outlook, kMoment), "");
}

TEST(ReasonsTest, TimeOutIsNeitherAfterTheDeadlineNorInThePast) {
  Outlook outlook = Open();
  outlook.lost_after = absl::Hours(10);
  EXPECT_EQ(NextStep(v1::REASON_CRASHED, Silent(Evidence::kClosed), outlook, kMoment),
            "becomes timed out at 18:00:00 UTC unless its heartbeats resume");
  outlook.lost_after = absl::Seconds(10);
  EXPECT_EQ(NextStep(v1::REASON_CRASHED, Silent(Evidence::kClosed), outlook, kMoment),
            "becomes timed out at 17:15:10 UTC unless its heartbeats resume");
}

TEST(ReasonsTest, DistantTimesIncludeTheDate) {
  EXPECT_EQ(ClockTime(kMoment.wall + absl::Hours(24), kMoment.wall), "2025-06-16 17:15:10 UTC");
  EXPECT_EQ(ClockTime(kMoment.wall - absl::Hours(11), kMoment.wall), "06:15:10 UTC");
}

TEST(ReasonsTest, HeartbeatsOfARevokedSenderCannotResume) {
  const PairFacts facts = Silent(Evidence::kRevoked);
  ASSERT_EQ(Judge(facts, kNow), v1::REASON_BLOCKED);
  const std::string next = NextStep(v1::REASON_BLOCKED, facts, Open(), kMoment);
  EXPECT_NE(next.find("becomes timed out at"), std::string::npos) << next;
  EXPECT_EQ(next.find("unless"), std::string::npos) << next;
}

}  // namespace
}  // namespace muster
