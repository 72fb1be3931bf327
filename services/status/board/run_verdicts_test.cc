#include <optional>
#include <string>

#include "services/status/board/board_fixture.h"
#include "services/status/board/run_board.h"

namespace muster {
namespace {

using testing::kRun;

class RunVerdictsTest : public testing::BoardFixture {
 protected:
  std::optional<std::string> NextVerdict() {
    const auto next = verdicts_.Next(0);
    if (!next) return std::nullopt;
    return next->verdict.has_lost() ? next->verdict.lost().reason()
                                    : next->verdict.start_grace_expired().reason();
  }
};

TEST_F(RunVerdictsTest, SilentPairGetsOneVerdict) {
  Start({"n1"});
  const auto sender = Online("n1");
  ASSERT_TRUE(SendHeartbeat(sender).ok());
  clock_.Advance(absl::Seconds(30));
  Silence(sender, v1::PRESENCE_SUSPECT, Evidence::kClosed);
  Pass(absl::Seconds(149));
  EXPECT_FALSE(NextVerdict());
  Pass(absl::Seconds(2));
  ASSERT_TRUE(NextVerdict());
  EXPECT_EQ(*NextVerdict(), "CRASHED: its connection was closed without a goodbye")
      << "the verdict contains the time as `since`";
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(events_[0].second.detail(), "its connection was closed without a goodbye");
  EXPECT_TRUE(Pair("n1").detail().starts_with("no heartbeat since ")) << Pair("n1").detail();
  const uint64_t number = verdicts_.Next(0)->number;
  Pass(absl::Seconds(10));
  EXPECT_EQ(verdicts_.Next(0)->number, number);
  SetPair("n1", v1::OUTCOME_TIMED_OUT, 1);
  EXPECT_FALSE(NextVerdict()) << "it was carried out";
  EXPECT_EQ(ReasonOfPair("n1"), "TIMED_OUT");
}

TEST_F(RunVerdictsTest, VerdictIsWithdrawnWhenThePairReturns) {
  Start({"n1"});
  const auto sender = Online("n1");
  ASSERT_TRUE(SendHeartbeat(sender).ok());
  Silence(sender, v1::PRESENCE_LOST, Evidence::kUnacknowledged);
  Pass(absl::Minutes(4));
  ASSERT_TRUE(NextVerdict());
  Return(sender);
  EXPECT_FALSE(NextVerdict());
}

TEST_F(RunVerdictsTest, DoubtSuspendsVerdicts) {
  Start({"n1"});
  const auto sender = Online("n1");
  ASSERT_TRUE(SendHeartbeat(sender).ok());
  sender->set_doubted(true);
  Silence(sender, v1::PRESENCE_UNKNOWN, Evidence::kUnacknowledged);
  doubt_ = "12 of 20 senders fell silent at once";
  Pass(absl::Minutes(10));
  EXPECT_EQ(ReasonOfPair("n1"), "SEGMENT_LOST");
  EXPECT_EQ(Get(0).doubt(), doubt_);
  EXPECT_FALSE(NextVerdict());
}

TEST_F(RunVerdictsTest, RunWithoutAReportGetsAVerdictNamingItsNodes) {
  v1::Run run = MakeRun(kRun, v1::RUN_STATE_PLANNED);
  run.mutable_start_grace()->set_seconds(300);
  Start(run, {"n1", "n2"});
  v1::Activity activity;
  activity.set_phase(v1::PHASE_CHECKING);
  activity.mutable_fault()->set_check(v1::Fault::CHECK_CLOCK);
  activity.mutable_fault()->set_message("3 h ahead");
  ASSERT_TRUE(board_.HandleActivity(Key("n2"), Online("n2"), activity).ok());
  EXPECT_NE(Pair("n1").next().find("the run fails at"), std::string::npos);
  Pass(absl::Seconds(299));
  EXPECT_FALSE(NextVerdict());
  EXPECT_EQ(Get(0).stragglers_size(), 1) << "the one with the fault";
  Pass(absl::Seconds(2));
  ASSERT_TRUE(NextVerdict());
  EXPECT_EQ(*NextVerdict(), "n2: CLOCK: 3 h ahead; n1: no heartbeat received");
  EXPECT_EQ(Get(0).stragglers_size(), 2) << "and the one that never came";
  run.set_state(v1::RUN_STATE_FAILED);
  SetRun(run);
  EXPECT_FALSE(NextVerdict());
}

// An agent sends heartbeats while its connection check is in progress.
TEST_F(RunVerdictsTest, CheckingAgentHasNotReported) {
  v1::Run run = MakeRun(kRun, v1::RUN_STATE_PLANNED);
  run.mutable_start_grace()->set_seconds(300);
  Start(run, {"n1", "n2"});
  const auto sender = Online("n1");
  ASSERT_TRUE(SendHeartbeat(sender, v1::PHASE_CHECKING).ok());
  ASSERT_TRUE(SendHeartbeat(sender, v1::PHASE_BLOCKED, "cannot ask the fleet").ok());
  v1::Activity activity;
  activity.set_phase(v1::PHASE_BLOCKED);
  activity.mutable_fault()->set_check(v1::Fault::CHECK_CONNECTION);
  activity.mutable_fault()->set_message("refused");
  ASSERT_TRUE(board_.HandleActivity(Key("n1"), sender, activity).ok());
  Pass(absl::Seconds(301));
  ASSERT_TRUE(NextVerdict());
  EXPECT_EQ(*NextVerdict(), "n1: CONNECTION: refused; n2: no heartbeat received");
}

TEST_F(RunVerdictsTest, OnlineAgentWithoutFaultDefersTheVerdict) {
  v1::Run run = MakeRun(kRun, v1::RUN_STATE_PLANNED);
  run.mutable_start_grace()->set_seconds(300);
  Start(run, {"n1", "n2"});
  const auto sender = Online("n1");
  ASSERT_TRUE(SendHeartbeat(sender, v1::PHASE_BLOCKED, "waits for a lease").ok());
  Pass(absl::Seconds(301));
  EXPECT_FALSE(NextVerdict());
  Silence(sender, v1::PRESENCE_SUSPECT, Evidence::kClosed);
  Pass(absl::Seconds(2));
  EXPECT_TRUE(NextVerdict());
}

TEST_F(RunVerdictsTest, OneReportedAgentIsEnough) {
  v1::Run run = MakeRun(kRun, v1::RUN_STATE_PLANNED);
  run.mutable_start_grace()->set_seconds(300);
  Start(run, {"n1", "n2"});
  ASSERT_TRUE(SendHeartbeat(Online("n1")).ok());
  Pass(absl::Minutes(6));
  EXPECT_FALSE(NextVerdict());
}

TEST_F(RunVerdictsTest, GraceCountsOnlyWhileTheServiceIsReady) {
  v1::Run run = MakeRun(kRun, v1::RUN_STATE_PLANNED);
  *run.mutable_create_time() = ToTimestamp(clock_.Now() - absl::Hours(1));
  run.mutable_start_grace()->set_seconds(300);
  Start(run, {"n1"});
  Pass(absl::Seconds(299));
  EXPECT_FALSE(NextVerdict()) << "agents had no chance while this service was not there";
  Pass(absl::Seconds(2));
  EXPECT_TRUE(NextVerdict());
}

TEST_F(RunVerdictsTest, ClosedConnectionIsACrashWhileThePresenceIsUnknown) {
  Start({"n1"});
  const auto sender = Online("n1");
  ASSERT_TRUE(SendHeartbeat(sender).ok());
  clock_.Advance(absl::Minutes(2));
  Silence(sender, v1::PRESENCE_UNKNOWN, Evidence::kClosed);
  const v1::PairStatus pair = Pair("n1");
  EXPECT_EQ(ReasonName(pair.reason()), "CRASHED");
  EXPECT_NE(pair.detail().find("closed without a goodbye"), std::string::npos) << pair.detail();
  EXPECT_EQ(pair.next(),
            "the status service waits for its heartbeats before the pair can time out");
  Pass(absl::Minutes(10));
  EXPECT_FALSE(NextVerdict()) << "its agent may have no connection yet";
  Return(sender);
  EXPECT_EQ(ReasonOfPair("n1"), "RUNNING");
}

}  // namespace
}  // namespace muster
