#include "services/status/board/run_summary.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr absl::Duration kCreated = absl::Seconds(100);  // monotonic

class RunSummaryTest : public ::testing::Test {
 protected:
  RunSummaryTest() {
    run_.set_state(v1::RUN_STATE_RUNNING);
    outlook_.deadline = now_.wall + absl::Hours(6);
  }

  Pair& Add(const std::string& node, v1::Reason reason = v1::REASON_NOT_STARTED,
            const std::string& plugin = "facts") {
    Pair& pair = pairs_.Add(plugin, node, kCreated);
    if (reason != v1::REASON_NOT_STARTED) pairs_.Hear(pair, kCreated);
    pairs_.SetReason(pair, reason, kCreated);
    return pair;
  }

  void SetOutcome(Pair& pair, v1::Outcome outcome) {
    v1::FollowChangesResponse::PairChanged change;
    change.set_outcome(outcome);
    pairs_.SetOutcome(pair, change);
    pairs_.SetReason(pair, v1::REASON_UNSPECIFIED, now_.monotonic);
  }

  v1::RunStatus Make() { return MakeRunSummary(run_, pairs_, outlook_, kCreated, now_); }

  static std::string Nodes(const google::protobuf::RepeatedPtrField<v1::PairStatus>& pairs) {
    std::string nodes;
    for (const v1::PairStatus& pair : pairs) nodes += pair.node() + " ";
    return nodes;
  }

  v1::Run run_;
  PairTable pairs_;
  Outlook outlook_;
  Moment now_ = {absl::FromUnixSeconds(1'800'000'000), kCreated + absl::Minutes(10)};
};

TEST_F(RunSummaryTest, PlannedRunIsRunningWhenAnAgentHasReported) {
  run_.set_state(v1::RUN_STATE_PLANNED);
  EXPECT_EQ(Make().state(), v1::RUN_STATE_PLANNED);
  EXPECT_EQ(Make().state_reason(), "") << "no start grace";
  outlook_.start_by = now_.wall + absl::Seconds(90);
  EXPECT_EQ(Make().state_reason(), "fails at 08:01:30 UTC unless an agent of its plan reports");
  outlook_.start_by = absl::InfinitePast();
  outlook_.reported = true;
  EXPECT_EQ(Make().state(), v1::RUN_STATE_RUNNING);
  run_.set_state(v1::RUN_STATE_CANCELLED);
  EXPECT_EQ(Make().state(), v1::RUN_STATE_CANCELLED);
}

TEST_F(RunSummaryTest, RunThatWaitsForLateResultsStatesItsReason) {
  run_.set_state(v1::RUN_STATE_POST_PROCESSING);
  SetOutcome(Add("n1"), v1::OUTCOME_GENUINE);
  EXPECT_EQ(Make().state_reason(), "the archive is being built");
  SetOutcome(Add("n2"), v1::OUTCOME_TIMED_OUT);
  ToProto(now_.wall + absl::Seconds(90), run_.mutable_seal_time());
  EXPECT_EQ(Make().state_reason(), "waits until 08:01:30 UTC for late results of timed-out pairs");
  now_.wall += absl::Seconds(90);
  EXPECT_EQ(Make().state_reason(), "uploads in progress end, then the archive is built");
  run_.set_seal_fault("DISK_FULL: no space");
  EXPECT_EQ(Make().state_reason(),
            "the archive cannot be built, and the aggregator tries again: DISK_FULL: no space");
}

TEST_F(RunSummaryTest, FieldsOfTheRunAreCopied) {
  run_.set_title("nightly");
  run_.set_state(v1::RUN_STATE_FAILED);
  run_.set_state_reason("no agent reported");
  ToProto(now_.wall - absl::Minutes(10), run_.mutable_create_time());
  ToProto(now_.wall, run_.mutable_end_time());
  const v1::RunStatus status = Make();
  EXPECT_EQ(status.title(), "nightly");
  EXPECT_EQ(status.state(), v1::RUN_STATE_FAILED);
  EXPECT_EQ(status.state_reason(), "no agent reported");
  EXPECT_EQ(FromProto(status.create_time()), now_.wall - absl::Minutes(10));
  EXPECT_EQ(FromProto(status.end_time()), now_.wall);
  EXPECT_FALSE(status.has_deadline());
  EXPECT_EQ(FromProto(status.time()), now_.wall);
  EXPECT_EQ(status.percent_complete(), 0) << "a run without pairs";
}

TEST_F(RunSummaryTest, CountsAndReasonsAreTheSumOfThePlugins) {
  SetOutcome(Add("n1", v1::REASON_RUNNING), v1::OUTCOME_GENUINE);
  SetOutcome(Add("n2", v1::REASON_RUNNING, "logs"), v1::OUTCOME_ERROR);
  Add("n2", v1::REASON_CRASHED);
  Add("n3", v1::REASON_CRASHED, "logs");
  const v1::RunStatus status = Make();
  ASSERT_EQ(status.plugins_size(), 2);
  EXPECT_EQ(status.plugins(0).plugin(), "facts");
  EXPECT_EQ(status.plugins(0).counts().genuine(), 1);
  EXPECT_EQ(status.plugins(0).percent_complete(), 0.5);
  EXPECT_EQ(status.counts().planned(), 4);
  EXPECT_EQ(status.counts().pending(), 2);
  EXPECT_EQ(status.counts().genuine(), 1);
  EXPECT_EQ(status.counts().errors(), 1);
  EXPECT_EQ(status.percent_complete(), 0.5);
  ASSERT_EQ(status.reasons_size(), 1);
  EXPECT_EQ(status.reasons(0).reason(), v1::REASON_CRASHED);
  EXPECT_EQ(status.reasons(0).count(), 2);
}

TEST_F(RunSummaryTest, StragglersAreOrderedBySeverity) {
  Add("slow", v1::REASON_SLOW);
  Add("stuck", v1::REASON_STUCK);
  Add("runs", v1::REASON_RUNNING);
  Add("crashed", v1::REASON_CRASHED);
  Add("ended", v1::REASON_RUN_ENDED);
  EXPECT_EQ(Nodes(Make().stragglers()), "crashed stuck slow ");
}

TEST_F(RunSummaryTest, AtMost100StragglersAreListed) {
  for (int i = 0; i < 150; ++i) Add("n" + std::to_string(i), v1::REASON_STUCK);
  const v1::RunStatus status = Make();
  EXPECT_EQ(status.stragglers_size(), 100);
  EXPECT_EQ(status.reasons(0).count(), 150);
}

TEST_F(RunSummaryTest, PairThatHasNotStartedIsAStragglerAfterTheStartGrace) {
  Add("n1");
  EXPECT_EQ(Make().stragglers_size(), 0) << "a run without a start grace";
  run_.mutable_start_grace()->set_seconds(600);
  EXPECT_EQ(Make().stragglers_size(), 0);
  now_.monotonic += absl::Seconds(1);
  EXPECT_EQ(Nodes(Make().stragglers()), "n1 ");
}

TEST_F(RunSummaryTest, EstimateNeedsOneForEachPluginWithPendingPairs) {
  for (const char* plugin : {"facts", "logs"}) {
    PluginPairs& pairs = pairs_.Plugin(plugin);
    for (int i = 0; i < 3; ++i) pairs.durations.Add(absl::Minutes(plugin[0] == 'f' ? 20 : 40));
  }
  Add("n1", v1::REASON_RUNNING);
  Pair& logs = Add("n1", v1::REASON_RUNNING, "logs");
  const v1::RunStatus status = Make();
  ASSERT_TRUE(status.has_estimate());
  EXPECT_EQ(FromProto(status.estimate().latest()), FromProto(status.plugins(1).estimate().latest()))
      << "the run ends with its last plugin";
  EXPECT_GT(FromProto(status.estimate().latest()),
            FromProto(status.plugins(0).estimate().latest()));
  pairs_.SetReason(logs, v1::REASON_STUCK, now_.monotonic);
  EXPECT_TRUE(Make().plugins(0).has_estimate());
  EXPECT_FALSE(Make().has_estimate());
  SetOutcome(logs, v1::OUTCOME_ERROR);
  EXPECT_TRUE(Make().has_estimate());
}

TEST_F(RunSummaryTest, EstimateEndsAtTheDeadline) {
  for (int i = 0; i < 3; ++i) pairs_.Plugin("facts").durations.Add(absl::Minutes(40));
  Add("n1", v1::REASON_RUNNING);
  outlook_.deadline = now_.wall + absl::Minutes(1);
  EXPECT_EQ(FromProto(Make().estimate().latest()), outlook_.deadline);
  outlook_.ended = true;
  EXPECT_FALSE(Make().has_estimate());
}

}  // namespace
}  // namespace muster
