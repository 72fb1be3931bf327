#include "services/relay/jobs/job_state.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/jobs/job_state_fixture.h"

namespace muster {
namespace {

TEST_F(JobStateTest, JobEndsWithTheFinalRecordOfEveryTarget) {
  JobState job = Make();
  EXPECT_EQ(job.Release(kNow, routes_).size(), 3U);
  for (const char* node : {"n1", "n2", "n3"}) {
    EXPECT_EQ(job.Receive(Started(node)).size(), 1U);
    EXPECT_EQ(job.Describe().running(), 1);
    EXPECT_FALSE(job.ended());
    EXPECT_EQ(job.Receive(Exited(node, 2, node[1] - '1')).size(), 1U);
  }
  EXPECT_TRUE(job.ended());
  EXPECT_EQ(job.Describe().state(), v1::JOB_STATE_ENDED);
  EXPECT_EQ(job.Describe().succeeded(), 1);
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_EXITED), 3);
}

TEST_F(JobStateTest, LogHasRoomForTwiceTheOutputAndForEachTarget) {
  JobState::Plan plan;
  plan.targets = {"n1", "n2"};
  plan.max_output = 1'000'000;
  EXPECT_EQ(JobState::MaxLogSize(plan), 2 * 1'000'000 + (9 << 18) + 2 * (77 << 10));
}

TEST_F(JobStateTest, RepeatedRecordIsIgnored) {
  JobState job = Make();
  job.Receive(Started("n1"));
  EXPECT_EQ(job.Receive(Output("n1", 2, "x")).size(), 1U);
  EXPECT_TRUE(job.Receive(Output("n1", 2, "x")).empty());
  EXPECT_TRUE(job.Receive(Started("n1")).empty());
  EXPECT_EQ(job.Reached("n1"), 2);
  EXPECT_EQ(job.Describe().output_bytes(), 1);
}

TEST_F(JobStateTest, RecordAfterAGapIsIgnoredUntilTheMissingOneArrives) {
  JobState job = Make();
  job.Receive(Started("n1"));
  EXPECT_TRUE(job.Receive(Output("n1", 3, "later")).empty());
  EXPECT_EQ(job.Reached("n1"), 1);
  job.Receive(Output("n1", 2, "first"));
  EXPECT_EQ(job.Receive(Output("n1", 3, "later")).size(), 1U);
}

TEST_F(JobStateTest, RecordOfANodeThatIsNoTargetIsIgnored) {
  JobState job = Make();
  EXPECT_TRUE(job.Receive(Exited("n9", 1)).empty());
}

TEST_F(JobStateTest, ParallelLimitsTheReleasedTargets) {
  JobState job = Make(1);
  routes_ = {"n2", "n3"};
  EXPECT_EQ(job.Release(kNow, routes_), std::vector<std::string>{"n2"}) << "n1 is away";
  EXPECT_TRUE(job.Release(kNow, routes_).empty());
  job.Receive(Started("n2"));
  EXPECT_TRUE(job.Release(kNow, routes_).empty());
  job.Receive(Exited("n2", 2));
  EXPECT_EQ(job.Release(kNow, routes_), std::vector<std::string>{"n3"});
}

TEST_F(JobStateTest, TargetThatNeverHadARouteIsUnreachableAfterTheWait) {
  JobState job = Make();
  FakeRoutes routes;
  routes = {"n1", "n2"};
  EXPECT_EQ(job.Release(kNow, routes).size(), 3U) << "the dispatcher waits for n3";
  EXPECT_TRUE(job.Tick(At(9), routes).empty());
  const auto made = job.Tick(At(11), routes);
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].node(), "n3");
  EXPECT_EQ(made[0].final().outcome(), v1::JOB_OUTCOME_UNREACHABLE);
  EXPECT_EQ(made[0].sequence(), 0);
  EXPECT_TRUE(routes.withdrawn.contains("n3"));
}

// The command is in transit, or on the node.
TEST_F(JobStateTest, LostTargetThatTheCommandWasSentToIsIndeterminateAndCancelled) {
  JobState job = Make();
  job.Release(kNow, routes_);
  job.Receive(Started("n2"));
  routes_ = {"n1"};
  routes_.since = kNow + absl::Seconds(20);
  EXPECT_TRUE(job.Tick(At(29), routes_).empty()) << "n3 may come back";
  const auto made = job.Tick(At(30), routes_);
  ASSERT_EQ(made.size(), 1U) << "n2 has started";
  EXPECT_EQ(made[0].node(), "n3");
  EXPECT_EQ(made[0].final().outcome(), v1::JOB_OUTCOME_INDETERMINATE);
  EXPECT_EQ(routes_.withdrawn, std::set<std::string>{"n3"});
  EXPECT_EQ(job.Abandoned(), std::vector<std::string>{"n3"});
}

TEST_F(JobStateTest, AfterARestartTheCommandMayBeOnATargetThatHadNoTurn) {
  JobState job = Make(1);
  job.SetResumed();
  job.Release(kNow, routes_);
  routes_ = {"n1"};
  EXPECT_TRUE(job.Tick(At(-60), routes_).empty());
  EXPECT_EQ(job.Tick(At(11), routes_).size(), 2U);
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_INDETERMINATE), 2);
  EXPECT_EQ(routes_.withdrawn, (std::set<std::string>{"n2", "n3"}));
}

TEST_F(JobStateTest, TargetThatNeverAnswersTimesOut) {
  JobState job = Make();
  job.Release(kNow, routes_);
  job.Receive(Started("n1"));
  EXPECT_TRUE(job.Tick(At(65), routes_).empty());
  EXPECT_EQ(job.Tick(At(71), routes_).size(), 2U);
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_TIMED_OUT), 2);
  EXPECT_FALSE(job.ended()) << "n1 runs";
  EXPECT_EQ(job.Tick(At(131), routes_).size(), 1U);
  EXPECT_TRUE(job.ended());
}

// Not after the time in which the last target may start, which is 12 hours with --parallel.
TEST_F(JobStateTest, StartedTargetTimesOutAfterItsOwnTimeLimit) {
  JobState job = Make();
  job.Release(kNow, routes_);
  EXPECT_EQ(FromProto(job.Describe().deadline()), kNow + absl::Seconds(130));
  for (const char* node : {"n1", "n2", "n3"}) job.Receive(Started(node));
  EXPECT_TRUE(job.Tick(At(1), routes_).empty());
  EXPECT_EQ(FromProto(job.Describe().deadline()), kNow + absl::Seconds(71));
  EXPECT_TRUE(job.Tick(At(71), routes_).empty());
  EXPECT_EQ(job.Tick(At(72), routes_).size(), 3U);
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_TIMED_OUT), 3);
}

TEST_F(JobStateTest, StartedTargetIsNotEndedWhileItsRecordsArriveLate) {
  JobState job = Make();
  job.Release(kNow, routes_);
  for (const char* node : {"n1", "n2", "n3"}) job.Receive(Started(node));
  job.Tick(At(0), routes_);
  routes_ = {"n1", "n2"};
  int64_t sequence = 1;
  for (const int second : {60, 65, 70}) {
    ++sequence;
    for (const char* node : {"n1", "n3"}) job.Receive(Output(node, sequence, "x"));
    EXPECT_TRUE(job.Tick(At(second), routes_).empty());
  }
  EXPECT_EQ(FromProto(job.Describe().deadline()), kNow + absl::Seconds(80));
  const auto made = job.Tick(At(72), routes_);
  ASSERT_EQ(made.size(), 2U) << "n2 is silent, and n3 is not attached";
  EXPECT_EQ(made[0].node(), "n2");
  job.Receive(Exited("n1", 5));
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_EXITED), 1);
}

TEST_F(JobStateTest, TargetThatSendsAllTheTimeIsEndedAnHourLater) {
  JobState job = Make();
  job.Receive(Started("n1"));
  job.Tick(At(0), routes_);
  for (int i = 1; i <= 367; ++i) {
    job.Receive(Output("n1", i + 1, "x"));
    job.Tick(At(10 * i), routes_);
  }
  EXPECT_EQ(job.Describe().running(), 1);
  job.Receive(Output("n1", 369, "x"));
  job.Tick(At(3'671), routes_);
  EXPECT_EQ(job.Describe().running(), 0);
}

TEST_F(JobStateTest, StepOfTheWallClockEndsNoStartedTarget) {
  JobState job = Make();
  job.Receive(Started("n1"));
  job.Tick(At(0), routes_);
  job.Tick({kNow + absl::Hours(24), At(1).monotonic}, routes_);
  EXPECT_EQ(job.Describe().running(), 1);
}

TEST_F(JobStateTest, NodeCanAttachAfterARestartThatTookLongerThanTheLimit) {
  JobState job = Make();
  job.Replay(Started("n1"));
  job.SetResumed();
  routes_.clear();
  job.Tick(At(1'000), routes_);
  EXPECT_EQ(job.Describe().running(), 1);
  job.Tick(At(1'011), routes_);
  EXPECT_EQ(job.Describe().running(), 0);
}

TEST_F(JobStateTest, LossOfANodeThatRunsTheCommandIsRecordedOnce) {
  JobState job = Make();
  job.Release(kNow, routes_);
  for (const char* node : {"n1", "n2"}) job.Receive(Started(node));
  job.Tick(At(0), routes_);
  EXPECT_TRUE(job.ReportLost(At(0), routes_).empty());
  routes_ = {"n2"};
  routes_.since = kNow + absl::Seconds(20);
  EXPECT_TRUE(job.ReportLost(At(21), routes_).empty()) << "it may come back";
  const auto lost = job.ReportLost(At(23), routes_);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].branch().relay(), "");
  EXPECT_TRUE(lost[0].branch().lost());
  EXPECT_EQ(lost[0].branch().waiting(), 1) << "n3 has not started";
  EXPECT_EQ(lost[0].branch().detail(),
            "not attached any more while the command runs: n1; without a report, timed out at "
            "2025-06-15 15:07:50 UTC");
  EXPECT_TRUE(job.ReportLost(At(24), routes_).empty());
  routes_ = {"n1", "n2", "n3"};
  const auto back = job.ReportLost(At(25), routes_);
  ASSERT_EQ(back.size(), 1U);
  EXPECT_FALSE(back[0].branch().lost());
  EXPECT_EQ(back[0].branch().detail(), "attached again: n1");
}

TEST_F(JobStateTest, NodeThatIsLostAgainAndAgainDoesNotHideTheLossOfOthers) {
  JobState job = Make();
  for (const char* node : {"n1", "n2"}) job.Receive(Started(node));
  routes_.since = kNow - absl::Seconds(10);
  size_t records = 0;
  for (int i = 0; i < 5'000; ++i) {
    routes_ = {"n2"};
    records += job.ReportLost(At(0), routes_).size();
    routes_ = {"n1", "n2"};
    records += job.ReportLost(At(0), routes_).size();
  }
  EXPECT_EQ(records, 40U) << "20 losses";
  routes_ = {"n1"};
  EXPECT_EQ(job.ReportLost(At(0), routes_).size(), 1U);
  const auto relay_of = [](std::string_view) { return "r1"; };
  EXPECT_EQ(job.RelaysChanged({{"r1", false}}, kNow, relay_of).size(), 1U);
}

TEST_F(JobStateTest, NodesAreNotLostWhileTheyAttachAfterARestart) {
  JobState job = Make();
  job.Receive(Started("n1"));
  job.SetResumed();
  routes_.clear();
  EXPECT_TRUE(job.ReportLost(At(30), routes_).empty());
  EXPECT_TRUE(job.ReportLost(At(39), routes_).empty());
  EXPECT_EQ(job.ReportLost(At(40), routes_).size(), 1U);
}

TEST_F(JobStateTest, NodesAreNotAwayWhileTheyAttachAfterARestart) {
  JobState job = Make();
  job.SetResumed();
  job.Release(kNow, routes_);
  routes_.clear();
  EXPECT_TRUE(job.Tick(At(-20), routes_).empty());
  EXPECT_TRUE(job.Tick(At(49), routes_).empty());
  EXPECT_EQ(job.Tick(At(50), routes_).size(), 3U);
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_INDETERMINATE), 3);
}

TEST_F(JobStateTest, TargetWhoseTurnNeverCameExpires) {
  JobState job = Make(1);
  job.Release(kNow, routes_);
  job.Receive(Started("n1"));
  job.Tick(At(61), routes_);
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_EXPIRED), 2);
}

TEST_F(JobStateTest, RecordOfTheNodeReplacesOurs) {
  JobState job = Make();
  job.Release(kNow, routes_);
  routes_.clear();
  job.Tick(At(11), routes_);
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_INDETERMINATE), 3);
  EXPECT_EQ(job.Receive(Started("n1")).size(), 1U);
  EXPECT_EQ(job.Receive(Exited("n1", 2)).size(), 1U);
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_INDETERMINATE), 2);
  EXPECT_EQ(job.Describe().succeeded(), 1);
  EXPECT_TRUE(job.Receive(Exited("n1", 3, 7)).empty()) << "there is one end";
}

TEST_F(JobStateTest, CancelEndsTargetsThatTheCommandWasNeverSentTo) {
  JobState job = Make(2);
  job.Release(kNow, routes_);
  job.Receive(Started("n1"));
  routes_ = {"n1"};
  const auto made = job.Cancel(kNow, routes_);
  ASSERT_EQ(made.size(), 1U) << "n1 runs, n2 may have the command, n3 waits for its turn";
  EXPECT_EQ(made[0].node(), "n3");
  EXPECT_EQ(made[0].final().outcome(), v1::JOB_OUTCOME_CANCELLED);
  EXPECT_EQ(routes_.withdrawn, (std::set<std::string>{"n1", "n2"})) << "cancelled on the way";
  EXPECT_TRUE(job.Release(kNow, routes_).empty());
  v1::JobRecord end = Exited("n1", 2);
  end.mutable_final()->set_outcome(v1::JOB_OUTCOME_CANCELLED);
  job.Receive(end);
  EXPECT_FALSE(job.ended());
  job.Tick(At(10), routes_);
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_INDETERMINATE), 1) << "n2 did not come back";
  EXPECT_EQ(job.Describe().state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(JobStateTest, TargetOutsideTheTopologyIsUnknown) {
  JobState job = Make();
  const auto made =
      job.EndUnknown(kNow, [](std::string_view node) { return node == "n2" ? "revoked" : ""; });
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].final().detail(), "revoked");
  EXPECT_EQ(made[0].final().outcome(), v1::JOB_OUTCOME_UNKNOWN);
  EXPECT_EQ(job.Open(), (std::vector<std::string>{"n1", "n3"}));
}

TEST_F(JobStateTest, ReplayedLogRestoresTheState) {
  JobState job = Make(0, 10);
  std::vector<v1::JobRecord> log;
  const auto keep = [&](std::vector<v1::JobRecord> records) {
    log.insert(log.end(), records.begin(), records.end());
  };
  job.Release(kNow, routes_);
  keep(job.Receive(Started("n1")));
  keep(job.Receive(Output("n1", 2, "12345678")));
  keep(job.Receive(Started("n2")));
  keep(job.Receive(Exited("n2", 2, 3)));
  routes_ = {"n1", "n2"};
  keep(job.Tick(At(11), routes_));
  JobState next = Make(0, 10);
  for (const v1::JobRecord& record : log) next.Replay(record);
  EXPECT_EQ(next.Describe().SerializeAsString(), job.Describe().SerializeAsString());
  EXPECT_EQ(next.Reached("n1"), 2);
  EXPECT_EQ(next.Open(), std::vector<std::string>{"n1"});
}

TEST_F(JobStateTest, LostBranchIsRecordedIfItHasOpenTargets) {
  JobState job = Make();
  const auto relay_of = [](std::string_view node) { return node == "n3" ? "r3" : "r1"; };
  const auto made = job.RelaysChanged({{"r1", false}, {"r2", false}}, kNow, relay_of);
  ASSERT_EQ(made.size(), 1U);
  EXPECT_TRUE(made[0].branch().lost());
  EXPECT_EQ(made[0].branch().waiting(), 2);
  for (const char* node : {"n1", "n2"}) job.Receive(Exited(node, 1));
  EXPECT_TRUE(job.RelaysChanged({{"r1", true}}, kNow, relay_of).empty());
}

TEST_F(JobStateTest, ChangesOfManyRelaysLookUpEachOpenTargetOnce) {
  JobState job = Make();
  job.Receive(Exited("n3", 1));
  int lookups = 0;
  const auto relay_of = [&lookups](std::string_view node) {
    ++lookups;
    return node == "n1" ? "r1" : "r2";
  };
  std::map<std::string, bool> relays;
  for (int i = 0; i < 1'000; ++i) relays[absl::StrCat("r", i)] = true;
  EXPECT_EQ(job.RelaysChanged(relays, kNow, relay_of).size(), 2U);
  EXPECT_EQ(lookups, 2);
}

}  // namespace
}  // namespace muster
