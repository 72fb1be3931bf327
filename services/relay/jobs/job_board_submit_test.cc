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
constexpr char kOther[] = "spiffe://fleet.test/user/p";

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
      {.folder = "/jobs"}, {disk_, topology_, dispatcher_, clock_, clock_, executor_, executor_});
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

TEST_F(JobBoardSubmitTest, CancelledJobThatDoesNotExistIsCreatedAndNotSent) {
  const JobRequest request = testing::MakeJobRequest("j", clock_.Now());
  const auto cancelled = board_->CancelOrCreate(request, kOperator, kOther);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_TRUE(cancelled->changed);
  // The submission arrives later.
  EXPECT_FALSE(Request(request)->changed);
  EXPECT_FALSE(board_->CancelOrCreate(request, kOperator, kOperator)->changed);
  executor_.AwaitIdle();
  EXPECT_TRUE(link_->Take().empty());
  const v1::Job job = board_->Get("j")->job;
  EXPECT_EQ(job.state(), v1::JOB_STATE_CANCELLED);
  ASSERT_EQ(job.outcomes_size(), 1);
  EXPECT_EQ(job.outcomes(0).outcome(), v1::JOB_OUTCOME_CANCELLED);
  const auto records = board_->Unaudited(10);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].actor(), kOperator);
  EXPECT_EQ(records[1].actor(), kOther);
  EXPECT_TRUE(records[1].cancelled());
}

// A start that finds the job finds its cancellation.
TEST_F(JobBoardSubmitTest, CancelledJobThatIsCreatedSurvivesAnyLossOfPower) {
  const JobRequest request = testing::MakeJobRequest("j", clock_.Now());
  int found = 0;
  for (int calls = 1; calls <= 40; ++calls) {
    SimulatedDisk disk;
    ASSERT_TRUE(MakeFolders(disk, "/jobs").ok());
    Executor executor{{"job-writer", 1, 100}};
    {
      const auto board = *JobBoard::Open(
          {.folder = "/jobs"}, {disk, topology_, dispatcher_, clock_, clock_, executor, executor});
      disk.PowerOffAt(calls);
      board->CancelOrCreate(request, kOperator, kOther).IgnoreError();
      executor.AwaitIdle();
    }
    disk.Crash(static_cast<uint64_t>(calls));
    const auto stored = JobFolder::Read(disk, "/jobs/j");
    if (!stored.ok()) continue;
    ++found;
    EXPECT_TRUE(stored->cancelled) << calls;
    EXPECT_EQ(stored->audit.cancelled_by, kOther);
  }
  EXPECT_GT(found, 0);
}

TEST_F(JobBoardSubmitTest, JobThatExistsIsCancelledIfItsCommandIsTheSame) {
  const JobRequest request = testing::MakeJobRequest("j", clock_.Now());
  ASSERT_TRUE(Request(request).ok());
  const JobRequest other = testing::MakeJobRequest("j", clock_.Now() + absl::Seconds(1));
  EXPECT_EQ(ReasonOf(board_->CancelOrCreate(other, kOperator, kOther).status()), "JOB_EXISTS");
  EXPECT_EQ(board_->Unaudited(10).size(), 1u);
  EXPECT_TRUE(board_->CancelOrCreate(request, kOperator, kOther)->changed);
  EXPECT_EQ(board_->Unaudited(10).size(), 2u);
}

}  // namespace
}  // namespace muster
