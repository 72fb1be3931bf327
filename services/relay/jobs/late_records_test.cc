// Outcomes of nodes that arrive after the end of their job.
#include <cerrno>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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
    root.Advance(absl::Seconds(1));  // late records arrive later
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
    EXPECT_TRUE(root.Receive("j1", 2, "late output\n", false, "n2"));
  }
  Root root(disk_);
  root.Advance(absl::Hours(1));
  EXPECT_TRUE(root.board().Get("j1")->job.has_late_time());
  EXPECT_EQ(root.board().Get("j1")->job.output_bytes(), 12);
  EXPECT_TRUE(root.Receive("j1", 3, "", true, "n2"));
  EXPECT_EQ(root.Count("j1", v1::JOB_OUTCOME_EXITED), 2);
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

TEST_F(LateRecordsTest, JobsOfOneNodeAreOpenedOneAfterAnother) {
  Root root(disk_);
  const std::vector<std::string> jobs = {"j1", "j2", "j3"};
  for (const std::string& job : jobs) {
    SubmitAndLoseN2(root, job);
    root.Reattach("n2");
  }
  root.Receive("j1", 2, "more follows", false, "n2");
  root.Receive("j2", 2, "", true, "n2");
  EXPECT_EQ(root.Count("j2", v1::JOB_OUTCOME_EXITED), 1) << "its record is not acked";
  root.Receive("j1", 3, "", true, "n2");
  // Nothing more is expected for j1.
  for (const char* job : {"j2", "j3"}) root.Receive(job, 2, "", true, "n2");
  for (const std::string& job : jobs) EXPECT_EQ(root.Count(job, v1::JOB_OUTCOME_EXITED), 2) << job;
}

// Acks and ends of other jobs do not wait for the log of a large one.
TEST_F(LateRecordsTest, OtherJobsContinueWhileAJobIsOpened) {
  Root root(disk_);
  SubmitAndLoseN2(root);
  ASSERT_TRUE(root.Submit("j2").ok());
  std::promise<void> go;
  ASSERT_TRUE(root.late().Post([&] { go.get_future().wait(); }));
  root.held = true;
  EXPECT_TRUE(root.Receive("j1", 2, "late output\n", false, "n2"));
  EXPECT_TRUE(root.Receive("j1", 3, "", true, "n2"));
  EXPECT_EQ(root.Count("j1", v1::JOB_OUTCOME_EXITED), 1);
  EXPECT_TRUE(root.Receive("j2", 1, "", true));
  EXPECT_EQ(root.Count("j2", v1::JOB_OUTCOME_EXITED), 1);
  go.set_value();
  root.held = false;
  root.AwaitIdle();
  ExpectLate(root);
}

// All targets are abandoned, and half of them tell their outcome, one after each end of the job.
TEST_F(LateRecordsTest, NamesOfManyNodesAreNotStoredAgainAtEachEnd) {
  Root root(disk_);
  std::vector<std::string> nodes;
  for (int i = 0; i < 2'000; ++i) nodes.push_back(absl::StrCat("node-", i));
  const auto link = std::make_shared<RecordedLink>();
  for (const std::string& node : nodes) root.Attach(node, link);
  root.DetailsOf(disk_, "j1", nodes);
  for (const std::string& node : nodes) ASSERT_TRUE(root.ReceiveStarted("j1", node));
  for (const std::string& node : nodes) root.Detach(node);
  root.Advance(absl::Seconds(1));
  root.Advance(absl::Minutes(12));
  ASSERT_TRUE(root.HasEnded("j1"));
  const int64_t before = disk_.Stat("/jobs/j1/job")->size;
  for (size_t i = 1'990; i < nodes.size(); ++i) {
    EXPECT_TRUE(root.Receive("j1", 2, "", true, nodes[i]));
    root.Advance(absl::Seconds(11));
    EXPECT_EQ(root.Count("j1", v1::JOB_OUTCOME_EXITED), static_cast<int64_t>(i) - 1'989);
  }
  EXPECT_LT(disk_.Stat("/jobs/j1/job")->size - before, 10'000);
  // A node that was never a target is acked, and the job is not read for it.
  EXPECT_TRUE(root.Receive("j1", 2, "", true, "n1"));
  EXPECT_FALSE(root.board().Get("j1")->job.state() == v1::JOB_STATE_RUNNING);
}

// Also a node that sends its own records, one after each end of the job, loses none of them.
TEST_F(LateRecordsTest, OutcomeAfterManyReopeningsWaitsAndIsNotLost) {
  Root root(disk_);
  SubmitAndLoseN2(root);
  const auto link = root.Reattach("n2");
  int64_t sequence = 1;
  const auto is_acked = [&] {
    int64_t acked = 0;
    for (const v1::AttachResponse& message : link->Take()) {
      for (const auto& reached : message.records_ack().reached()) acked = reached.sequence();
    }
    return acked == sequence;
  };
  for (bool acked = true; acked && sequence < 1'000;) {
    root.Receive("j1", ++sequence, "x", false, "n2");
    root.Advance(absl::Seconds(11));  // the job ends again
    acked = is_acked();
  }
  ASSERT_LT(sequence, 1'000) << "the number of openings is not limited";
  root.Receive("j1", sequence, "", true, "n2");
  EXPECT_EQ(root.Count("j1", v1::JOB_OUTCOME_EXITED), 1);
  EXPECT_FALSE(is_acked());
  root.Advance(absl::Minutes(2));  // RecordSender::kResendAfter
  root.Receive("j1", sequence, "", true, "n2");
  root.Advance(absl::Seconds(11));
  EXPECT_TRUE(is_acked());
  ExpectLate(root);
}

}  // namespace
}  // namespace muster
