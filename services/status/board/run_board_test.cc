#include "services/status/board/run_board.h"

#include <string>

#include "services/status/board/board_fixture.h"

namespace muster {
namespace {

using testing::kRun;

class RunBoardTest : public testing::BoardFixture {
 protected:
  int64_t CountOf(v1::Reason reason) {
    const v1::RunStatus status = Get(0);
    for (const v1::ReasonCount& count : status.reasons()) {
      if (count.reason() == reason) return count.count();
    }
    return 0;
  }

  // Starts a run with two pairs of "n1", whose process restarts and works for one of them.
  std::shared_ptr<Sender> AbandonPair() {
    Start({"n1"});
    SetPair("n1", v1::OUTCOME_PENDING, 0, "logs");
    auto sender = Online("n1");
    EXPECT_TRUE(SendHeartbeat(sender).ok());
    EXPECT_TRUE(SendHeartbeat(sender, v1::PHASE_WORKING, "", "logs").ok());
    clock_.Advance(absl::Minutes(1));
    EXPECT_TRUE(SendHeartbeat(sender).ok());  // the new process, for one of its pairs
    sender->AddRestart();
    Silence(sender, v1::PRESENCE_ONLINE, Evidence::kNone);
    return sender;
  }
};

TEST_F(RunBoardTest, PairPassesFromNotStartedToItsResult) {
  Start({"n1"});
  EXPECT_EQ(ReasonOfPair("n1"), "NOT_STARTED");
  EXPECT_FALSE(Pair("n1").has_heartbeat_age());
  const auto sender = Online("n1");
  ASSERT_TRUE(SendHeartbeat(sender, v1::PHASE_CHECKING).ok());
  EXPECT_EQ(ReasonOfPair("n1"), "RUNNING");
  EXPECT_EQ(CountOf(v1::REASON_RUNNING), 1);
  EXPECT_EQ(CountOf(v1::REASON_NOT_STARTED), 0);
  ASSERT_TRUE(SendHeartbeat(sender, v1::PHASE_BLOCKED, "waits for <b>a</b> file").ok());
  EXPECT_EQ(ReasonOfPair("n1"), "BLOCKED");
  EXPECT_EQ(Pair("n1").detail(), "waits for <b>a</b> file");
  clock_.Advance(absl::Seconds(7));
  EXPECT_EQ(Pair("n1").heartbeat_age().seconds(), 7);
  EXPECT_EQ(Get(0).stragglers_size(), 1);
  SetPair("n1", v1::OUTCOME_GENUINE, 1);
  const v1::PairStatus pair = Pair("n1");
  EXPECT_EQ(pair.reason(), v1::REASON_UNSPECIFIED);
  EXPECT_EQ(pair.detail(), "");
  EXPECT_EQ(pair.heartbeat_age().seconds(), 7) << "its sender has sent a heartbeat";
  EXPECT_EQ(Get(0).reasons_size(), 0);
  EXPECT_EQ(Get(0).stragglers_size(), 0);
}

TEST_F(RunBoardTest, CredentialOfAnyNodeYieldsToTheLiveAgentOfTheNode) {
  Start({"n1"});
  const auto agent = Online("n1");
  ASSERT_TRUE(SendHeartbeat(agent, v1::PHASE_WORKING, "works").ok());
  const auto shared = std::make_shared<Sender>("spiffe://r.fleet/plugin/facts", "n1");
  shared->set_presence(v1::PRESENCE_ONLINE, clock_.MonotonicNow());
  ASSERT_TRUE(SendHeartbeat(shared, v1::PHASE_BLOCKED, "says another").ok());
  Silence(shared, v1::PRESENCE_OFFLINE, Evidence::kNone);
  EXPECT_EQ(ReasonOfPair("n1"), "RUNNING");
  EXPECT_EQ(Pair("n1").detail(), "works");
  EXPECT_EQ(Pair("n1").presence(), v1::PRESENCE_ONLINE);
  Silence(agent, v1::PRESENCE_LOST, Evidence::kNone);
  shared->set_presence(v1::PRESENCE_ONLINE, clock_.MonotonicNow());
  ASSERT_TRUE(SendHeartbeat(shared, v1::PHASE_WORKING, "works instead").ok());
  EXPECT_EQ(Pair("n1").detail(), "works instead");
}

TEST_F(RunBoardTest, ReasonOfSilenceFollowsTheEvidence) {
  Start({"cut", "killed", "stopped", "works"});
  const auto killed = Online("killed");
  const auto stopped = Online("stopped");
  const auto cut = Online("cut");
  const auto works = Online("works");
  for (const auto& sender : {killed, stopped, cut, works}) ASSERT_TRUE(SendHeartbeat(sender).ok());
  Silence(killed, v1::PRESENCE_LATE, Evidence::kClosed);
  Silence(stopped, v1::PRESENCE_LATE, Evidence::kAcknowledging);
  Silence(cut, v1::PRESENCE_LATE, Evidence::kUnacknowledged);
  EXPECT_EQ(ReasonOfPair("killed"), "CRASHED");
  EXPECT_EQ(ReasonOfPair("stopped"), "NOT_RESPONDING");
  EXPECT_EQ(ReasonOfPair("cut"), "NETWORK_LOST");
  EXPECT_EQ(ReasonOfPair("works"), "RUNNING");
  const v1::RunStatus status = Get(0);
  ASSERT_EQ(status.stragglers_size(), 3);
  EXPECT_EQ(status.stragglers(0).node(), "killed") << "the worst first";
  EXPECT_EQ(status.stragglers(1).node(), "cut");
  ASSERT_EQ(events_.size(), 3u);
  EXPECT_EQ(events_[0].first, "killed");
  EXPECT_EQ(events_[0].second.reason(), v1::REASON_CRASHED);
  EXPECT_EQ(events_[0].second.run(), kRun);
  Return(killed);
  EXPECT_EQ(ReasonOfPair("killed"), "RUNNING");
}

TEST_F(RunBoardTest, PairThatTheNewProcessAbandonedIsCrashed) {
  const auto sender = AbandonPair();
  const v1::RunStatus status = Get();
  EXPECT_EQ(status.pairs(0).plugin(), "facts");
  EXPECT_EQ(status.pairs(0).reason(), v1::REASON_RUNNING);
  EXPECT_EQ(status.pairs(1).reason(), v1::REASON_CRASHED);
  ASSERT_TRUE(SendHeartbeat(sender, v1::PHASE_WORKING, "", "logs").ok());
  EXPECT_EQ(Get().pairs(1).reason(), v1::REASON_RUNNING);
}

TEST_F(RunBoardTest, EachRestartAbandonsThePairsThatItDoesNotName) {
  const auto sender = AbandonPair();
  ASSERT_TRUE(SendHeartbeat(sender, v1::PHASE_WORKING, "", "logs").ok());
  clock_.Advance(absl::Minutes(1));
  ASSERT_TRUE(SendHeartbeat(sender).ok());
  sender->AddRestart();
  board_.PresenceChanged(sender);
  EXPECT_EQ(Get().pairs(1).reason(), v1::REASON_CRASHED);
}

TEST_F(RunBoardTest, SilenceAfterAnEarlierRestartIsNoCrash) {
  const auto sender = AbandonPair();
  Return(sender);
  clock_.Advance(absl::Minutes(1));
  Silence(sender, v1::PRESENCE_SUSPECT, Evidence::kNone);
  EXPECT_EQ(Get().pairs(0).reason(), v1::REASON_NOT_RESPONDING);
}

TEST_F(RunBoardTest, ReturnToAnAbandonedPairWithdrawsItsVerdict) {
  const auto sender = AbandonPair();
  Pass(absl::Minutes(4));
  EXPECT_EQ(verdicts_.standing(), 1u);
  ASSERT_TRUE(SendHeartbeat(sender, v1::PHASE_WORKING, "", "logs").ok());
  EXPECT_EQ(verdicts_.standing(), 0u);
}

TEST_F(RunBoardTest, ProgressWithoutMovementIsStuckUntilItMoves) {
  Start({"n1", "sidecar"});
  const auto sender = Online("n1");
  ASSERT_TRUE(SendHeartbeat(sender).ok());
  ASSERT_TRUE(Report("n1", 10, 1).ok());
  ASSERT_TRUE(Report("sidecar", 10, 1).ok());
  Pass(kStuckAtLeast - absl::Seconds(2));
  ASSERT_TRUE(Report("n1", 10, 1).ok()) << "the same again is no movement";
  EXPECT_EQ(ReasonOfPair("n1"), "RUNNING");
  Pass(absl::Seconds(3));
  EXPECT_EQ(ReasonOfPair("n1"), "STUCK");
  EXPECT_EQ(ReasonOfPair("sidecar"), "RUNNING") << "a pair without heartbeats is not stuck";
  ASSERT_TRUE(Report("n1", 10, 2).ok());
  EXPECT_EQ(ReasonOfPair("n1"), "RUNNING");
  Pass(absl::Minutes(10));
  EXPECT_EQ(ReasonOfPair("n1"), "STUCK") << "and again: three of its steps of two minutes";
}

TEST_F(RunBoardTest, PairSlowerThanNineInTenIsSlow) {
  std::vector<std::string> nodes = {"n0", "n1", "n2", "n3", "n4", "n5"};
  Start(nodes);
  for (const std::string& node : nodes) ASSERT_TRUE(SendHeartbeat(Online(node)).ok());
  for (int second = 0; second <= 30; ++second) {
    for (const std::string& node : nodes) {
      ASSERT_TRUE(Report(node, 1000, node == "n3" ? second : second * 10).ok());
    }
    Pass(absl::Seconds(1));
  }
  EXPECT_EQ(ReasonOfPair("n3"), "SLOW");
  EXPECT_EQ(CountOf(v1::REASON_SLOW), 1);
  // Those that finished are still what it is compared with.
  for (const std::string& node : nodes) {
    if (node != "n3") SetPair(node, v1::OUTCOME_GENUINE, 1);
  }
  Pass(absl::Seconds(11));
  EXPECT_EQ(ReasonOfPair("n3"), "SLOW");
}

TEST_F(RunBoardTest, EndIsEstimatedFromFinishedPairs) {
  Start({"a", "b", "c", "d"});
  for (const char* node : {"a", "b", "c", "d"}) ASSERT_TRUE(SendHeartbeat(Online(node)).ok());
  const absl::Time begin = clock_.Now();
  clock_.Advance(absl::Seconds(60));
  SetPair("a", v1::OUTCOME_GENUINE, 1);
  SetPair("b", v1::OUTCOME_GENUINE, 1);
  EXPECT_FALSE(Get(0).has_estimate());
  SetPair("c", v1::OUTCOME_GENUINE, 1);
  const v1::RunStatus status = Get(0);
  EXPECT_FALSE(status.has_estimate()) << "d takes as long as every other did already";
  SetPair("e");
  SetPair("f");
  SetPair("d", v1::OUTCOME_GENUINE, 1);
  const auto e = Online("e");
  ASSERT_TRUE(SendHeartbeat(e).ok());
  SetPair("f", v1::OUTCOME_ERROR, 1);
  const v1::RunStatus later = Get(0);
  ASSERT_TRUE(later.has_estimate());
  EXPECT_GE(FromProto(later.estimate().earliest()), begin + absl::Seconds(119));
  EXPECT_LE(FromProto(later.estimate().latest()), begin + absl::Seconds(60 + 73));
  Silence(e, v1::PRESENCE_LOST, Evidence::kUnacknowledged);
  EXPECT_FALSE(Get(0).has_estimate()) << "it is not known when e continues";
}

TEST_F(RunBoardTest, NewProgressIsReturnedOnce) {
  Start({"n1", "n2"});
  ASSERT_TRUE(Report("n1", 10, 1).ok());
  ASSERT_TRUE(Report("n1", 10, 2).ok());
  ASSERT_TRUE(Report("n2", 10, 2).ok());
  SetPair("n2", v1::OUTCOME_GENUINE, 1);
  const auto taken = board_.DrainNewProgress();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].first.node(), "n1");
  EXPECT_EQ(taken[0].second.completed(), 2);
  EXPECT_TRUE(board_.DrainNewProgress().empty());
}

TEST_F(RunBoardTest, PairWithoutAnOutcomeInAnEndedRunIsNotRunning) {
  v1::Run run = MakeRun();
  Start(run, {"crashed", "finished", "runs", "unheard"});
  ASSERT_TRUE(SendHeartbeat(Online("runs")).ok());
  const auto crashed = Online("crashed");
  ASSERT_TRUE(SendHeartbeat(crashed).ok());
  Silence(crashed, v1::PRESENCE_LATE, Evidence::kClosed);
  SetPair("finished", v1::OUTCOME_GENUINE, 1);
  clock_.Advance(absl::Minutes(1));
  run.set_state(v1::RUN_STATE_CANCELLED);
  *run.mutable_end_time() = ToTimestamp(clock_.Now() - absl::Seconds(1));
  SetRun(run);
  for (const char* node : {"crashed", "runs", "unheard"}) {
    const v1::PairStatus pair = Pair(node);
    EXPECT_EQ(pair.outcome(), v1::OUTCOME_PENDING);
    EXPECT_EQ(ReasonName(pair.reason()), "RUN_ENDED") << node;
    EXPECT_EQ(pair.detail(), "the run ended before the pair had an outcome");
    EXPECT_EQ(pair.next(), "");
    EXPECT_EQ(FromProto(pair.reason_since()), clock_.Now() - absl::Seconds(1));
    EXPECT_EQ(FromProto(pair.update_time()), clock_.Now() - absl::Seconds(1));
  }
  EXPECT_EQ(Pair("finished").reason(), v1::REASON_UNSPECIFIED);
  EXPECT_EQ(CountOf(v1::REASON_RUN_ENDED), 3);
  EXPECT_EQ(Get(0).reasons_size(), 1);
  EXPECT_EQ(Get(0).stragglers_size(), 0);
  ASSERT_TRUE(SendHeartbeat(Online("runs")).ok());
  EXPECT_EQ(ReasonOfPair("runs"), "RUN_ENDED");
}

TEST_F(RunBoardTest, EndedRunInASnapshotHasNoRunningPair) {
  v1::Run run = MakeRun(kRun, v1::RUN_STATE_FAILED);
  *run.mutable_end_time() = ToTimestamp(clock_.Now() - absl::Hours(1));
  Begin();
  SetRun(run);
  SetPair("n1");
  SetPair("n2", v1::OUTCOME_TIMED_OUT, 1);
  End();
  EXPECT_EQ(ReasonOfPair("n1"), "RUN_ENDED");
  EXPECT_EQ(FromProto(Pair("n1").reason_since()), clock_.Now() - absl::Hours(1));
  EXPECT_EQ(ReasonOfPair("n2"), "TIMED_OUT");
  EXPECT_FALSE(Pair("n2").has_reason_since()) << "it is not known";
}

TEST_F(RunBoardTest, TitleOfTheRunIsShown) {
  v1::Run run = MakeRun();
  run.set_title("nightly");
  Start(run, {"n1"});
  EXPECT_EQ(Get(0).title(), "nightly");
}

TEST_F(RunBoardTest, SilenceIsNoTimeWithoutProgress) {
  Start({"n1"});
  const auto sender = Online("n1");
  ASSERT_TRUE(SendHeartbeat(sender).ok());
  ASSERT_TRUE(Report("n1", 10, 1).ok());
  Silence(sender, v1::PRESENCE_SUSPECT, Evidence::kAcknowledging);
  Pass(kStuckAtLeast + absl::Seconds(30));  // the process is stopped
  EXPECT_EQ(ReasonOfPair("n1"), "NOT_RESPONDING");
  Return(sender);
  EXPECT_EQ(ReasonOfPair("n1"), "RUNNING");
  Pass(kStuckAtLeast - absl::Seconds(2));
  EXPECT_EQ(ReasonOfPair("n1"), "RUNNING");
  Pass(absl::Seconds(3));
  EXPECT_EQ(ReasonOfPair("n1"), "STUCK");
}

TEST_F(RunBoardTest, LateReportDoesNotChangeTheTimeOfTheOutcome) {
  Start({"n1"});
  ASSERT_TRUE(Report("n1", 10, 1).ok());
  SetPair("n1", v1::OUTCOME_GENUINE, 1);
  const absl::Time at = clock_.Now();
  clock_.Advance(absl::Minutes(1));
  ASSERT_TRUE(Report("n1", 10, 10).ok());
  EXPECT_EQ(FromProto(Pair("n1").update_time()), at);
}

TEST_F(RunBoardTest, LostRelayIsADoubtOnlyForRunsOfItsNodes) {
  RelayState r1("r1");
  RelayState r2("r2");
  v1::Run run = MakeRun();
  Start(run, {"n1", "n2"});
  const auto n1 = Online("n1");
  n1->set_relay(&r1);
  ASSERT_TRUE(SendHeartbeat(n1).ok());
  ASSERT_TRUE(SendHeartbeat(Online("n2")).ok());
  lost_relays_ = {&r2};
  EXPECT_EQ(Get(0).doubt(), "");
  lost_relays_ = {&r2, &r1};
  SetRun(run);  // the summary is made again
  EXPECT_NE(Get(0).doubt().find("relay r1 is not connected"), std::string::npos) << Get(0).doubt();
}

TEST_F(RunBoardTest, EndedRunIsNotInDoubt) {
  Start({"n1"});
  doubt_ = "12 of 20 senders fell silent at once";
  v1::Run run = MakeRun(kRun, v1::RUN_STATE_CANCELLED);
  SetRun(run);
  EXPECT_EQ(Get(0).doubt(), "");
}

// The two clocks cannot be read at the same instant, and clients compare responses.
TEST_F(RunBoardTest, UnchangedPairKeepsItsTimes) {
  Start({"n1"});
  const absl::Time since = FromProto(Pair("n1").reason_since());
  clock_.JumpWall(clock_.Now() + absl::Microseconds(3));
  EXPECT_EQ(FromProto(Pair("n1").reason_since()), since);
  clock_.JumpWall(clock_.Now() - absl::Microseconds(6));
  EXPECT_EQ(FromProto(Pair("n1").reason_since()), since);
  clock_.JumpWall(clock_.Now() + absl::Hours(1));
  EXPECT_GT(FromProto(Pair("n1").reason_since()), since + absl::Minutes(59)) << "the clock was set";
}

}  // namespace
}  // namespace muster
