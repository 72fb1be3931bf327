#include "services/status/board/board_metrics.h"

#include <string>

#include "gmock/gmock.h"
#include "services/status/board/board_fixture.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class BoardMetricsTest : public testing::BoardFixture {
 protected:
  std::string Shown() {
    board_metrics_.Update(board_.MakeTally());
    return metrics_.Text();
  }

  Metrics metrics_;
  const BoardMetrics board_metrics_{metrics_};
};

TEST_F(BoardMetricsTest, EveryStateAndReasonHasASeriesFromTheStart) {
  const std::string text = Shown();
  EXPECT_THAT(text, HasSubstr("muster_runs{state=\"RUN_STATE_FAILED\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("muster_pending_pairs{reason=\"REASON_TIMED_OUT\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("UNSPECIFIED")));
}

TEST_F(BoardMetricsTest, CountsRunsByStateAndUnfinishedPairsByReason) {
  Start({"n1", "n2", "n3"});
  ASSERT_TRUE(SendHeartbeat(Online("n1")).ok());
  SetPair("n2", v1::OUTCOME_GENUINE, 1);
  std::string text = Shown();
  EXPECT_THAT(text, HasSubstr("muster_runs{state=\"RUN_STATE_RUNNING\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("muster_pending_pairs{reason=\"REASON_RUNNING\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("muster_pending_pairs{reason=\"REASON_NOT_STARTED\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("n1")));

  SetRun(MakeRun(testing::kRun, v1::RUN_STATE_CANCELLED));
  text = Shown();
  EXPECT_THAT(text, HasSubstr("muster_runs{state=\"RUN_STATE_CANCELLED\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("muster_pending_pairs{reason=\"REASON_RUNNING\"} 0\n"));
  DeleteRun();
  EXPECT_THAT(Shown(), HasSubstr("muster_runs{state=\"RUN_STATE_CANCELLED\"} 0\n"));
}

}  // namespace
}  // namespace muster
