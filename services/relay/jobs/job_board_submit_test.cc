#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/executor.h"
#include "services/relay/jobs/job_board.h"
#include "services/relay/testing/job_fixture.h"

namespace muster {
namespace {

class JobBoardSubmitTest : public testing::JobFixture {
 protected:
  absl::Status Submit(const std::string& job) {
    return board_->Submit(testing::MakeJobRequest(job, clock_.Now()), "spiffe://fleet.test/user/o")
        .status();
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

}  // namespace
}  // namespace muster
