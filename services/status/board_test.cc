#include "services/status/board.h"

#include <string>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

using Event = v1::FollowChangesResponse;

constexpr char kRun[] = "0123456789abcdef";

class BoardTest : public ::testing::Test {
 protected:
  void Begin() {
    Event event;
    event.mutable_snapshot_begin();
    board_.Apply(event, now_);
  }

  void End() {
    Event event;
    event.mutable_snapshot_end();
    board_.Apply(event, now_);
  }

  void Run(const std::string& id = kRun) {
    Event event;
    event.mutable_run()->set_id(id);
    event.mutable_run()->set_state(v1::RUN_STATE_RUNNING);
    event.mutable_run()->mutable_create_time()->set_seconds(static_cast<int64_t>(id.back()));
    event.mutable_run()->add_plugins()->set_name("facts");
    board_.Apply(event, now_);
  }

  void Pair(const std::string& node, v1::Outcome outcome, int64_t generation) {
    Event event;
    event.mutable_pair()->mutable_key()->set_run(kRun);
    event.mutable_pair()->mutable_key()->set_plugin("facts");
    event.mutable_pair()->mutable_key()->set_node(node);
    event.mutable_pair()->set_outcome(outcome);
    event.mutable_pair()->set_generation(generation);
    board_.Apply(event, now_);
  }

  v1::RunStatus Get(int page_size = 100, const std::string& token = "") {
    StatusQuery query;
    query.run = kRun;
    query.page_size = page_size;
    query.page_token = token;
    return board_.Get(query).value();
  }

  absl::Status Report(const std::string& node, int64_t total, int64_t completed) {
    v1::ReportProgressRequest report;
    report.mutable_key()->set_run(kRun);
    report.mutable_key()->set_plugin("facts");
    report.mutable_key()->set_node(node);
    report.set_total(total);
    report.set_completed(completed);
    return board_.Report(report, now_);
  }

  Board board_;
  const absl::Time now_ = absl::Now();
};

TEST_F(BoardTest, SaysNothingBeforeTheFirstSnapshotIsWhole) {
  Begin();
  Run();
  EXPECT_EQ(ReasonOf(board_.Get({}).status()), "STATUS_NOT_READY");
  EXPECT_FALSE(board_.Ready().ok());
  End();
  EXPECT_TRUE(board_.Get({}).ok());
}

TEST_F(BoardTest, CountsEachPairOnceHoweverOftenItIsTold) {
  Begin();
  Run();
  Pair("n1", v1::OUTCOME_PENDING, 0);
  Pair("n2", v1::OUTCOME_PENDING, 0);
  End();
  Pair("n1", v1::OUTCOME_ERROR, 1);
  Pair("n1", v1::OUTCOME_GENUINE, 2);
  Pair("n1", v1::OUTCOME_ERROR, 1);  // an older change, told again
  const v1::RunStatus status = Get();
  EXPECT_EQ(status.plugins(0).counts().planned(), 2);
  EXPECT_EQ(status.plugins(0).counts().genuine(), 1);
  EXPECT_EQ(status.plugins(0).counts().errors(), 0);
  EXPECT_EQ(status.plugins(0).counts().pending(), 1);
  EXPECT_DOUBLE_EQ(status.percent_complete(), 0.5);
}

TEST_F(BoardTest, ANewSnapshotReplacesRunsAndKeepsProgress) {
  Begin();
  Run();
  Run("000000000000000f");
  Pair("n1", v1::OUTCOME_PENDING, 0);
  End();
  ASSERT_TRUE(Report("n1", 10, 4).ok());
  Begin();
  Run();
  Pair("n1", v1::OUTCOME_PENDING, 0);
  End();
  EXPECT_EQ(Get().pairs(0).progress().completed(), 4);
  StatusQuery gone;
  gone.run = "000000000000000f";
  EXPECT_EQ(ReasonOf(board_.Get(gone).status()), "RUN_NOT_FOUND");
}

TEST_F(BoardTest, PagesCoverEveryPairOnce) {
  Begin();
  Run();
  for (const char* node : {"a", "b", "c", "d", "e"}) Pair(node, v1::OUTCOME_PENDING, 0);
  End();
  std::string nodes;
  std::string token;
  do {
    const v1::RunStatus status = Get(2, token);
    for (const auto& pair : status.pairs()) nodes += pair.node();
    token = status.next_page_token();
  } while (!token.empty());
  EXPECT_EQ(nodes, "abcde");
  StatusQuery query;
  query.run = kRun;
  query.page_size = 2;
  query.page_token = "invented";
  EXPECT_EQ(ReasonOf(board_.Get(query).status()), "INVALID_PAGE_TOKEN");
}

TEST_F(BoardTest, ProgressOfWhatIsNotPlannedIsRefused) {
  Begin();
  Run();
  Pair("n1", v1::OUTCOME_PENDING, 0);
  End();
  EXPECT_EQ(ReasonOf(Report("n9", 1, 1)), "PAIR_NOT_PLANNED");
  EXPECT_EQ(ReasonOf(Report("n1", -1, 0)), "INVALID_PROGRESS");
  EXPECT_TRUE(Report("n1", 1, 1).ok());
}

}  // namespace
}  // namespace muster
