// Outcomes of nodes that arrive after the end of their job.
#include <cerrno>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/simulated_disk.h"
#include "services/relay/jobs/job_board.h"
#include "services/relay/testing/job_board_root.h"

namespace muster {
namespace {

using testing::Root;

// A job that n1 ended, and that gave up n2.
class LateRecordsTest : public ::testing::Test {
 protected:
  void SubmitAndLoseN2(Root& root, const std::string& job = "j1") {
    ASSERT_TRUE(root.Submit(job).ok());
    ASSERT_TRUE(root.ReceiveStarted(job, "n2"));
    ASSERT_TRUE(root.Receive(job, 1, "", true));
    root.Detach("n2");
    root.Advance(
        absl::Seconds(1));  // the deadline of a target counts from the tick after its start
    root.Advance(absl::Minutes(12));
    ASSERT_TRUE(root.HasEnded(job));
    ASSERT_EQ(root.Count(job, v1::JOB_OUTCOME_TIMED_OUT), 1);
    ended_ = root.board().Get(job)->job;
  }

  void ExpectLate(Root& root, const std::string& job = "j1") {
    const v1::Job late = root.board().Get(job)->job;
    EXPECT_TRUE(root.HasEnded(job));
    EXPECT_EQ(root.Count(job, v1::JOB_OUTCOME_EXITED), 2);
    EXPECT_EQ(root.Count(job, v1::JOB_OUTCOME_TIMED_OUT), 0);
    EXPECT_EQ(late.succeeded(), 2);
    EXPECT_EQ(late.end_time().seconds(), ended_.end_time().seconds());
    EXPECT_GT(late.late_time().seconds(), late.end_time().seconds());
  }

  SimulatedDisk disk_;
  v1::Job ended_;
};

TEST_F(LateRecordsTest, OutcomeOfTheNodeReplacesThatOfTheRelay) {
  Root root(disk_);
  SubmitAndLoseN2(root);
  const int64_t end = root.board().Get("j1")->end;
  root.Reattach("n2");
  EXPECT_TRUE(root.Receive("j1", 2, "late output\n", false, "n2"));
  EXPECT_TRUE(root.HasEnded("j1")) << "it does not run again";
  EXPECT_TRUE(root.Receive("j1", 3, "", true, "n2"));
  EXPECT_GT(root.board().Get("j1")->end, end);
  EXPECT_EQ(root.board().running(), 0);
  root.Advance(absl::Seconds(11));
  ExpectLate(root);
  EXPECT_EQ(root.board().Get("j1")->job.output_bytes(), 12);
  // The outcome of the node is final.
  EXPECT_TRUE(root.Receive("j1", 4, "more\n", false, "n2"));
  EXPECT_EQ(root.board().Get("j1")->job.output_bytes(), 12);
}

TEST_F(LateRecordsTest, AbandonedNodeIsKnownAfterARestart) {
  {
    Root root(disk_);
    SubmitAndLoseN2(root);
  }
  Root root(disk_);
  root.Advance(absl::Hours(1));  // its clock begins again
  EXPECT_TRUE(root.Receive("j1", 2, "", true, "n2"));
  root.Advance(absl::Seconds(11));
  ExpectLate(root);
}

TEST_F(LateRecordsTest, RestartWhileItIsOpenLosesNothing) {
  {
    Root root(disk_);
    SubmitAndLoseN2(root);
    EXPECT_TRUE(root.Receive("j1", 2, "", true, "n2"));
  }
  Root root(disk_);
  root.Advance(absl::Hours(1));
  EXPECT_EQ(root.Count("j1", v1::JOB_OUTCOME_EXITED), 2);
  EXPECT_TRUE(root.board().Get("j1")->job.has_late_time());
  EXPECT_EQ(root.board().running(), 0);
}

// Watchers have seen the late records: they do not vanish.
TEST_F(LateRecordsTest, StartThatCannotReadThemLeavesTheJobOut) {
  int64_t end = 0;
  {
    Root root(disk_);
    SubmitAndLoseN2(root);
    EXPECT_TRUE(root.Receive("j1", 2, "late output\n", false, "n2"));
    end = root.board().Get("j1")->end;
  }
  int left_out = 0;
  for (int n = 1; n <= 20; ++n) {
    disk_.FailAt(SimulatedDisk::Call::kRead, n, EIO);
    Root root(disk_);
    const auto view = root.board().Get("j1");
    left_out += view.ok() ? 0 : 1;
    if (view.ok()) EXPECT_EQ(view->end, end) << n;
  }
  EXPECT_GT(left_out, 0);
}

TEST_F(LateRecordsTest, RecordsOfOtherNodesChangeNothing) {
  Root root(disk_);
  SubmitAndLoseN2(root);
  root.forged = "n2";
  EXPECT_TRUE(root.Receive("j1", 2, "", true, "n2"));
  EXPECT_TRUE(root.Receive("j1", 2, "", true, "n1"));
  EXPECT_TRUE(root.Receive("j1", 2, "", true, "n3"));
  root.Advance(absl::Seconds(11));
  EXPECT_EQ(root.board().Get("j1")->job.SerializeAsString(), ended_.SerializeAsString());
}

TEST_F(LateRecordsTest, RestartChangesNoFinishedJob) {
  {
    Root root(disk_);
    SubmitAndLoseN2(root);
  }
  Root root(disk_);
  root.Advance(absl::Seconds(30));
  EXPECT_EQ(root.board().Get("j1")->job.SerializeAsString(), ended_.SerializeAsString());
}

TEST_F(LateRecordsTest, RecordsThatAreNotTheNextOnesChangeNothing) {
  Root root(disk_);
  SubmitAndLoseN2(root);
  EXPECT_TRUE(root.Receive("j1", 999, "forged\n", false, "n2"));
  root.Advance(absl::Seconds(11));
  EXPECT_EQ(root.board().Get("j1")->job.SerializeAsString(), ended_.SerializeAsString());
  EXPECT_TRUE(root.Receive("j1", 2, "", true, "n2"));
  root.Advance(absl::Seconds(11));
  ExpectLate(root);
}

TEST_F(LateRecordsTest, FewJobsAreOpenAtATimeAndTheOthersFollow) {
  Root root(disk_);
  const std::vector<std::string> jobs = {"j1", "j2", "j3", "j4", "j5", "j6"};
  for (const std::string& job : jobs) {
    SubmitAndLoseN2(root, job);
    root.Reattach("n2");
  }
  for (const std::string& job : jobs) root.Receive(job, 2, "", true, "n2");
  EXPECT_EQ(root.Count("j4", v1::JOB_OUTCOME_EXITED), 2);
  EXPECT_EQ(root.Count("j5", v1::JOB_OUTCOME_EXITED), 1) << "its record is not acked";
  root.Advance(absl::Seconds(11));
  for (const std::string& job : jobs) root.Receive(job, 2, "", true, "n2");
  root.Advance(absl::Seconds(11));
  for (const std::string& job : jobs) EXPECT_EQ(root.Count(job, v1::JOB_OUTCOME_EXITED), 2) << job;
}

}  // namespace
}  // namespace muster
