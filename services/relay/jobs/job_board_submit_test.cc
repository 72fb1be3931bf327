#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/executor.h"
#include "services/relay/jobs/job_board.h"
#include "services/relay/testing/job_fixture.h"

namespace muster {
namespace {

constexpr char kOperator[] = "spiffe://fleet.test/user/o";

class JobBoardSubmitTest : public testing::JobFixture {
 protected:
  absl::StatusOr<JobChange> Request(const JobRequest& request) {
    return board_->Submit(request, kOperator);
  }
  absl::Status Submit(const std::string& job) {
    return Request(testing::MakeJobRequest(job, clock_.Now())).status();
  }

  Executor executor_{{"job-writer", 1, 100}};
  const std::unique_ptr<JobBoard> board_ = *JobBoard::Open(
      {.folder = "/jobs"}, {disk_, topology_, dispatcher_, clock_, clock_, executor_});
};

TEST_F(JobBoardSubmitTest, JobForAllWithoutANodeIsRefusedAndNotCreated) {
  topology_.Forget("spiffe://fleet.test/node/n1");
  EXPECT_EQ(ReasonOf(Submit("j")), "NODE_NOT_FOUND");
  EXPECT_TRUE(board_->List("", 10).empty());
}

TEST_F(JobBoardSubmitTest, JobForAllWaitsForADetachedNode) {
  topology_.Detach("n1", link_.get());
  EXPECT_TRUE(Submit("j").ok());
  EXPECT_EQ(board_->List("", 10).size(), 1u);
}

// The audit log records the changes.
TEST_F(JobBoardSubmitTest, RepeatedRequestChangesNothing) {
  const JobRequest request = testing::MakeJobRequest("j", clock_.Now());
  EXPECT_TRUE(Request(request)->changed);
  EXPECT_FALSE(Request(request)->changed);
  EXPECT_TRUE(board_->Cancel("j", kOperator)->changed);
  EXPECT_FALSE(board_->Cancel("j", kOperator)->changed);
}

TEST_F(JobBoardSubmitTest, CancelOfAnEndedJobChangesNothing) {
  ASSERT_TRUE(Submit("j").ok());
  v1::JobRecords records;
  v1::JobRecord& record = *records.add_records();
  record.set_job("j");
  record.set_node("n1");
  record.set_sequence(1);
  record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
  board_->Receive(std::move(records), [] {});
  executor_.AwaitIdle();
  const auto cancelled = board_->Cancel("j", kOperator);
  ASSERT_TRUE(cancelled.ok());
  EXPECT_FALSE(cancelled->changed);
  EXPECT_EQ(cancelled->job.state(), v1::JOB_STATE_ENDED);
}

}  // namespace
}  // namespace muster
