#include "cli/output/run_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"

namespace muster::cli {
namespace {

const absl::TimeZone kUtc = absl::UTCTimeZone();
const absl::Time kNow = absl::FromCivil(absl::CivilSecond(2026, 11, 21, 14, 0, 0), kUtc);

v1::ResultCounts Counts(int genuine, int errors, int timed_out, int pending) {
  v1::ResultCounts counts;
  counts.set_planned(genuine + errors + timed_out + pending);
  counts.set_genuine(genuine);
  counts.set_errors(errors);
  counts.set_timed_out(timed_out);
  counts.set_pending(pending);
  return counts;
}

void AddReason(v1::Reason reason, v1::PluginStatus& plugin) {
  v1::ReasonCount* count = plugin.add_reasons();
  count->set_reason(reason);
  count->set_count(1);
}

RunView Example() {
  v1::RunStatus status;
  status.set_run("3f2a0123456789ab");
  status.set_state(v1::RUN_STATE_RUNNING);
  status.mutable_deadline()->set_seconds(absl::ToUnixSeconds(kNow + absl::Seconds(725)));
  *status.mutable_counts() = Counts(4, 2, 1, 2);
  v1::PluginStatus* facts = status.add_plugins();
  facts->set_plugin("hostfacts");
  *facts->mutable_counts() = Counts(3, 0, 0, 2);
  AddReason(v1::REASON_RUNNING, *facts);
  AddReason(v1::REASON_NOT_RESPONDING, *facts);
  *status.mutable_reasons() = facts->reasons();
  v1::PluginStatus* logs = status.add_plugins();
  logs->set_plugin("systemd-logs");
  *logs->mutable_counts() = Counts(1, 2, 1, 0);
  v1::PairStatus pair;
  pair.set_plugin("systemd-logs");
  pair.set_node("n2");
  pair.set_outcome(v1::OUTCOME_ERROR);
  pair.set_error(
      "journal not found:\n"
      "on this machine\x1b[2J");
  *status.add_pairs() = pair;
  v1::PairStatus& straggler = *status.add_pairs();
  straggler.set_plugin("hostfacts");
  straggler.set_node("n5");
  straggler.set_outcome(v1::OUTCOME_PENDING);
  straggler.set_reason(v1::REASON_NOT_RESPONDING);
  straggler.mutable_reason_since()->set_seconds(absl::ToUnixSeconds(kNow - absl::Seconds(25)));
  straggler.mutable_heartbeat_age()->set_seconds(42);
  straggler.set_detail("its machine acknowledges");
  straggler.set_next("becomes timed out at 14:02:18");
  straggler.mutable_progress()->set_message("disks\x1b[2J");
  v1::PairStatus& active = *status.add_pairs();
  active.set_plugin("hostfacts");
  active.set_node("n4");
  active.set_outcome(v1::OUTCOME_PENDING);
  active.set_reason(v1::REASON_RUNNING);
  active.mutable_progress()->set_total(10);
  active.mutable_progress()->set_completed(3);
  active.mutable_progress()->set_message("mounts");
  return ViewOf(status);
}

TEST(RunViewTest, SilenceOfTheAggregatorIsReportedUntilTheRunHasEnded) {
  constexpr char kSilence[] =
      "he aggregator has not answered the status service since 13:58:44 UTC: later changes of the "
      "run are not shown";
  RunView view = Example();
  view.status.mutable_time()->set_seconds(absl::ToUnixSeconds(kNow));
  view.status.mutable_feed_time()->set_seconds(absl::ToUnixSeconds(kNow - absl::Seconds(15)));
  EXPECT_THAT(Render(view, kNow, 0), ::testing::Not(::testing::HasSubstr("has not answered")));
  view.status.mutable_feed_time()->set_seconds(absl::ToUnixSeconds(kNow - absl::Seconds(76)));
  EXPECT_THAT(Render(view, kNow, 0), ::testing::HasSubstr(absl::StrCat("\nT", kSilence, "\n")));
  EXPECT_THAT(SummaryLine(view), ::testing::HasSubstr(absl::StrCat("; t", kSilence)));
  view.status.set_state(v1::RUN_STATE_COMPLETE);
  EXPECT_THAT(Render(view, kNow, 0), ::testing::Not(::testing::HasSubstr("has not answered")));
}

TEST(RunViewTest, RunningRunShowsPluginsErrorsAndProgress) {
  EXPECT_EQ(Render(Example(), kNow, 0),
            "Run 3f2a0123456789ab  running\n"
            "6 of 9 results, 2 errors, 1 timed out; deadline in 12m 05s (14:12:05 UTC)\n"
            "\n"
            "PLUGIN        OUTCOMES                     GENUINE  ERRORS  TIMED OUT  PENDING  "
            "REASONS\n"
            "hostfacts     [############--------]  60%        3       0          0        2  "
            "1 running, 1 not responding\n"
            "systemd-logs  [####################] 100%        1       2          1        0\n"
            "\n"
            "PLUGIN     NODE  REASON          SINCE  HEARTBEAT  DETAIL\n"
            "hostfacts  n5    not responding  25s    42s ago    its machine acknowledges; message: "
            "disks?[2J; becomes timed out at 14:02:18\n"
            "\n"
            "PLUGIN        NODE  ERROR\n"
            "systemd-logs  n2    journal not found: on this machine?[2J\n"
            "... and 2 more\n"
            "\n"
            "PLUGIN     NODE  DONE  MESSAGE\n"
            "hostfacts  n4    3/10  mounts\n");
}

TEST(RunViewTest, CompleteRunIsGreenOnlyIfAllResultsAreGenuine) {
  v1::Run run;
  run.set_id("3f2a");
  run.set_state(v1::RUN_STATE_COMPLETE);
  *run.mutable_counts() = Counts(2, 0, 0, 0);
  EXPECT_EQ(Render(ViewOf(run), kNow, 0, true),
            "Run 3f2a  \x1b[32mcomplete\x1b[0m\n2 of 2 results\n");
  *run.mutable_counts() = Counts(0, 0, 2, 0);
  EXPECT_EQ(Render(ViewOf(run), kNow, 0, true),
            "Run 3f2a  \x1b[33mcomplete\x1b[0m\n0 of 2 results, 2 timed out\n");
}

TEST(RunViewTest, DetailAndReasonOnATerminalAreWrapped) {
  RunView view = Example();
  view.status.set_state_reason("no node has reported within the start grace of 5 minutes");
  const std::string text = Render(view, kNow, 60);
  EXPECT_THAT(text,
              ::testing::StartsWith("Run 3f2a0123456789ab  running: no node has reported within\n"
                                    "the start grace of 5 minutes\n"));
  EXPECT_THAT(text,
              ::testing::HasSubstr("\nhostfacts  n5    not responding  25s    42s ago\n"
                                   "    its machine acknowledges; message: disks?[2J; becomes\n"
                                   "    timed out at 14:02:18\n"));
}

TEST(RunViewTest, CancelledRunShowsItsReasonAndNoDeadline) {
  v1::Run run;
  run.set_id("3f2a0123456789ab");
  run.set_state(v1::RUN_STATE_CANCELLED);
  run.set_state_reason("wrong nodes");
  run.mutable_deadline()->set_seconds(absl::ToUnixSeconds(kNow));
  *run.mutable_counts() = Counts(1, 0, 0, 0);
  EXPECT_EQ(Render(ViewOf(run), kNow, 0),
            "Run 3f2a0123456789ab  cancelled: wrong nodes\n"
            "1 of 1 result\n");
}

TEST(RunViewTest, TitleIsShownAfterTheId) {
  RunView view = Example();
  view.status.set_title("nightly\n\x1b[2J");
  EXPECT_THAT(Render(view, kNow, 0),
              ::testing::StartsWith("Run 3f2a0123456789ab (nightly ?[2J)  running\n"));
}

TEST(RunViewTest, PendingPairOfAnEndedRunHasNoOutcome) {
  v1::RunStatus status;
  status.set_run("3f2a0123456789ab");
  status.set_state(v1::RUN_STATE_CANCELLED);
  *status.mutable_counts() = Counts(1, 0, 0, 1);
  v1::PluginStatus* facts = status.add_plugins();
  facts->set_plugin("hostfacts");
  *facts->mutable_counts() = status.counts();
  AddReason(v1::REASON_RUN_ENDED, *facts);
  *status.mutable_reasons() = facts->reasons();
  v1::PairStatus& pair = *status.add_pairs();
  pair.set_plugin("hostfacts");
  pair.set_node("n1");
  pair.set_outcome(v1::OUTCOME_PENDING);
  pair.set_reason(v1::REASON_RUN_ENDED);
  EXPECT_EQ(Render(ViewOf(status), kNow, 0),
            "Run 3f2a0123456789ab  cancelled\n"
            "1 of 2 results\n"
            "\n"
            "PLUGIN     OUTCOMES                     GENUINE  ERRORS  TIMED OUT  NO OUTCOME  "
            "REASONS\n"
            "hostfacts  [##########----------]  50%        1       0          0           1  "
            "1 run ended\n");
}

TEST(RunViewTest, DetailsFromBeforeTheEndAreNotShown) {
  v1::Run run;
  run.set_state(v1::RUN_STATE_COMPLETE);
  EXPECT_FALSE(ViewOf(run, Example()).has_value());
  RunView details = Example();
  details.status.set_state(v1::RUN_STATE_COMPLETE);
  run.set_state(v1::RUN_STATE_RUNNING);
  EXPECT_FALSE(ViewOf(run, details).has_value());
}

TEST(RunViewTest, EndIsThatOfTheAggregator) {
  v1::Run run;
  run.set_state(v1::RUN_STATE_FAILED);
  run.set_state_reason("no agent reported");
  *run.mutable_counts() = Counts(1, 0, 0, 0);
  RunView details = Example();
  details.status.set_state(v1::RUN_STATE_FAILED);
  const std::optional<RunView> view = ViewOf(run, details);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(SummaryLine(*view), "failed: 1 of 1 result (no agent reported)");
  EXPECT_EQ(view->status.plugins_size(), 2);
}

TEST(RunViewTest, RunIsRunningOnceTheStatusServiceSaysSo) {
  v1::Run run;
  run.set_state(v1::RUN_STATE_PLANNED);
  const std::optional<RunView> view = ViewOf(run, Example());
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->status.state(), v1::RUN_STATE_RUNNING);
}

TEST(RunViewTest, EstimateIsARangeAndOmittedOnceItIsPast) {
  RunView view = Example();
  const auto set = [&](absl::Duration earliest, absl::Duration latest) {
    v1::Estimate& estimate = *view.status.mutable_estimate();
    estimate.mutable_earliest()->set_seconds(absl::ToUnixSeconds(kNow + earliest));
    estimate.mutable_latest()->set_seconds(absl::ToUnixSeconds(kNow + latest));
    return Render(view, kNow, 0);
  };
  EXPECT_THAT(set(absl::Minutes(3), absl::Minutes(8)),
              ::testing::HasSubstr("Estimate: done in 3m 00s to 8m 00s (14:03:00 UTC to 14:08:00 "
                                   "UTC), from the durations so far\n"));
  EXPECT_THAT(set(-absl::Minutes(1), absl::Minutes(2)), ::testing::HasSubstr("in 0s to 2m 00s"));
  EXPECT_THAT(set(-absl::Minutes(2), -absl::Minutes(1)),
              ::testing::Not(::testing::HasSubstr("Estimate")));
}

TEST(RunViewTest, DoubtOfTheStatusServiceIsShown) {
  RunView view = Example();
  view.status.set_doubt("heartbeats of a third of all senders stopped");
  EXPECT_THAT(Render(view, kNow, 0), ::testing::HasSubstr("a third of all senders stopped\n"));
}

TEST(RunViewTest, DamagedResultsAreShown) {
  RunView view = Example();
  EXPECT_THAT(Render(view, kNow, 0), ::testing::Not(::testing::HasSubstr("damaged")));
  view.status.set_damaged_results(1);
  EXPECT_THAT(SummaryLine(view), ::testing::EndsWith("; 1 damaged stored result or archive"));
  view.status.set_damaged_results(2);
  EXPECT_THAT(Render(view, kNow, 0),
              ::testing::HasSubstr("\n2 damaged stored results or archives; verify again: muster "
                                   "verify 3f2a0123456789ab\n"));
  v1::DamagedResult& damaged = view.damaged.emplace_back();
  damaged.mutable_key()->set_plugin("e2e");
  damaged.mutable_key()->set_node("n1");
  damaged.set_damage("the CRC32C differs");
  view.damaged.emplace_back().set_damage("damaged");
  EXPECT_THAT(Render(view, kNow, 0),
              ::testing::HasSubstr("\nPLUGIN     NODE  DAMAGE              REDELIVERY\n"
                                   "e2e        n1    the CRC32C differs  -\n"
                                   "(archive)  -     damaged             -\n"));
}

TEST(RunViewTest, PinIsShownBesideTheState) {
  RunView view = Example();
  EXPECT_THAT(Render(view, kNow, 0), ::testing::Not(::testing::HasSubstr("(pinned)")));
  view.pinned = true;
  EXPECT_THAT(Render(view, kNow, 0), ::testing::HasSubstr("  running (pinned)\n"));
}

TEST(RunViewTest, SummaryOfAMultilineReasonIsOneLine) {
  RunView view = Example();
  EXPECT_EQ(SummaryLine(view), "running: 6 of 9 results, 2 errors, 1 timed out");
  view.status.set_state(v1::RUN_STATE_FAILED);
  view.status.set_state_reason("disk\nfull");
  view.note = "the status service is unreachable";
  EXPECT_EQ(SummaryLine(view),
            "failed: 6 of 9 results, 2 errors, 1 timed out (disk full); the status service is "
            "unreachable");
}

TEST(RunViewTest, SummarySentenceSaysWhatHappenedToTheRun) {
  RunView view = Example();
  view.status.set_run("3f2a");
  view.status.set_state(v1::RUN_STATE_COMPLETE);
  EXPECT_THAT(SummarySentence(view), ::testing::StartsWith("Run 3f2a is complete: 6 of 9"));
  view.status.set_state(v1::RUN_STATE_FAILED);
  EXPECT_THAT(SummarySentence(view), ::testing::StartsWith("Run 3f2a failed: "));
  view.status.set_state(v1::RUN_STATE_CANCELLED);
  EXPECT_THAT(SummarySentence(view), ::testing::StartsWith("Run 3f2a was cancelled: "));
}

TEST(OutcomeExitCodeTest, EachFinalStateHasItsOwnCode) {
  EXPECT_EQ(OutcomeExitCode(v1::RUN_STATE_COMPLETE, Counts(2, 0, 0, 0)), 0);
  EXPECT_EQ(OutcomeExitCode(v1::RUN_STATE_COMPLETE, Counts(1, 1, 0, 0)), kExitRunErrors);
  EXPECT_EQ(OutcomeExitCode(v1::RUN_STATE_COMPLETE, Counts(0, 1, 1, 0)), kExitRunTimedOut);
  EXPECT_EQ(OutcomeExitCode(v1::RUN_STATE_FAILED, Counts(0, 0, 0, 2)), kExitRunFailed);
  EXPECT_EQ(OutcomeExitCode(v1::RUN_STATE_CANCELLED, Counts(2, 0, 0, 0)), kExitRunCancelled);
}

TEST(RunViewTest, FewPairsThatHaveNotStartedAreNamed) {
  v1::RunStatus status;
  status.set_state(v1::RUN_STATE_RUNNING);
  v1::ReasonCount& reason = *status.add_reasons();
  reason.set_reason(v1::REASON_NOT_STARTED);
  reason.set_count(7);
  for (int i = 1; i <= 7; ++i) {
    v1::PairStatus& pair = *status.add_pairs();
    pair.set_plugin("kernel");
    pair.set_node(absl::StrCat("n", i));
    pair.set_outcome(v1::OUTCOME_PENDING);
    pair.set_reason(v1::REASON_NOT_STARTED);
    pair.set_next("start its agent");
  }
  const std::string text = Render(ViewOf(status), absl::Now(), 0, false);
  EXPECT_NE(text.find("n5"), std::string::npos) << text;
  EXPECT_EQ(text.find("n6"), std::string::npos) << text;
  EXPECT_NE(text.find("2 more"), std::string::npos) << text;
  EXPECT_NE(text.find("start its agent"), std::string::npos) << text;
}

}  // namespace
}  // namespace muster::cli
