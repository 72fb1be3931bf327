#include "services/relay/jobs/job_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/simulated_disk.h"
#include "services/relay/testing/job_board_root.h"
#include "services/relay/testing/job_fixture.h"
#include "services/relay/testing/recorded_link.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Root;

TEST(JobBoardTest, RegisterExplainsAnUnknownTarget) {
  SimulatedDisk disk;
  Root root(disk);
  EXPECT_EQ(root.DetailsOf(disk, "j1", {"n1", "revoked", "away"}),
            (std::vector<std::string>{
                "away: no node of this name is attached, or was within the last week; if it has "
                "joined, start its agent",
                "revoked: it was revoked"}));
  EXPECT_EQ(root.looked_up, (std::vector<std::string>{"away", "revoked"}));
}

TEST(JobBoardTest, CommandWaitsForAJoinedNodeThatHasNotAttachedYet) {
  SimulatedDisk disk;
  Root root(disk);
  EXPECT_THAT(root.DetailsOf(disk, "j1", {"joined"}), IsEmpty());
  EXPECT_THAT(Root::Sent(*root.Reattach("joined")), ElementsAre("command joined"));
  root.Detach("joined");
}

TEST(JobBoardTest, JoinedNodeThatDoesNotAttachIsUnreachable) {
  SimulatedDisk disk;
  Root root(disk);
  EXPECT_THAT(root.DetailsOf(disk, "j1", {"joined"}), IsEmpty());
  root.Advance(absl::Minutes(1));
  EXPECT_THAT(root.DetailsOf(disk, "j1"),
              ElementsAre("joined: it was not reachable while the command waited for it"));
  EXPECT_TRUE(root.HasEnded("j1"));
}

TEST(JobBoardTest, JobThatIsCreatedDuringTheLookupOfASecondSubmissionIsReturned) {
  SimulatedDisk disk;
  Root root(disk);
  root.on_lookup = [&] { EXPECT_EQ(root.DetailsOf(disk, "j1", {"revoked"}).size(), 1U); };
  EXPECT_EQ(root.DetailsOf(disk, "j1", {"revoked"}).size(), 1U);
}

TEST(JobBoardTest, RecordsWithoutAWaitingNodeAreAckedTogether) {
  SimulatedDisk disk;
  Root root(disk);
  ASSERT_TRUE(root.Submit("j1").ok());
  ASSERT_TRUE(root.Receive("j1", 1, "a line\n", false));
  ASSERT_TRUE(root.Receive("j1", 2, "another\n", false));
  EXPECT_EQ(root.Acked(), 0);
  root.Advance(absl::Seconds(2));
  EXPECT_EQ(root.Acked(), 2);
}

TEST(JobBoardTest, NodeWithManyUnackedRecordsIsAckedAtOnce) {
  SimulatedDisk disk;
  Root root(disk);
  ASSERT_TRUE(root.Submit("j1").ok());
  ASSERT_TRUE(root.Receive("j1", 1, std::string(16 * 1024, 'x'), false));
  EXPECT_EQ(root.Acked(), 1);
  for (int64_t i = 2; i <= 65; ++i) ASSERT_TRUE(root.Receive("j1", i, "x", false));
  EXPECT_EQ(root.Acked(), 65);
}

TEST(JobBoardTest, RecordOfAFinishedJobIsAcked) {
  SimulatedDisk disk;
  Root root(disk);
  ASSERT_TRUE(root.Receive("long-ago", 7, "x", false));
  root.Advance(absl::Seconds(2));
  EXPECT_EQ(root.Acked(), 7);
}

TEST(JobBoardTest, OversizedRecordOfOneNodeLeavesTheRecordsOfOthers) {
  SimulatedDisk disk;
  {
    Root root(disk);
    ASSERT_TRUE(root.Submit("j1").ok());
    ASSERT_TRUE(root.Receive("j1", 1, std::string(100 * 1024, 'x'), false, "n1"));
    ASSERT_TRUE(root.Receive("j1", 1, "", true, "n2"));
    EXPECT_EQ(root.Count("j1", v1::JOB_OUTCOME_EXITED), 1);
  }
  Root again(disk);
  EXPECT_EQ(again.Count("j1", v1::JOB_OUTCOME_EXITED), 1);
}

TEST(JobBoardTest, OutputPastTheLimitSurvivesARestart) {
  SimulatedDisk disk;
  int64_t acked = 0;
  int64_t cut = 0;
  {
    Root root(disk, 10);
    ASSERT_TRUE(root.Submit("j1").ok());
    for (int64_t i = 1; i <= 200; ++i) ASSERT_TRUE(root.Receive("j1", i, "123456", false));
    root.Advance(absl::Seconds(2));
    ASSERT_GT(root.Acked(), 100);
    acked = root.Acked();
    cut = root.board().Get("j1")->job.cut_bytes();
  }
  Root again(disk, 10);
  EXPECT_EQ(again.board().Get("j1")->job.cut_bytes(), cut);
  // The node sends again what was not acked, and nothing else.
  for (int64_t i = acked + 1; i <= 200; ++i) {
    ASSERT_TRUE(again.Receive("j1", i, "123456", false));
  }
  ASSERT_TRUE(again.Receive("j1", 201, "", true));
  EXPECT_EQ(again.Count("j1", v1::JOB_OUTCOME_EXITED), 1);
  EXPECT_EQ(again.board().Get("j1")->job.cut_bytes(), 199 * 6);
}

TEST(JobBoardTest, JobWhoseSubmissionFailedNeverRuns) {
  using Call = SimulatedDisk::Call;
  for (const Call call : {Call::kCreate, Call::kOpen, Call::kWrite, Call::kSync, Call::kRename,
                          Call::kSyncFolder, Call::kMakeFolder, Call::kStat}) {
    bool failed = true;
    for (int n = 1; failed; ++n) {
      SCOPED_TRACE(::testing::Message() << "call " << static_cast<int>(call) << " n " << n);
      ASSERT_LT(n, 50);
      SimulatedDisk disk;
      {
        Root root(disk);
        disk.FailAt(call, n, EIO);
        failed = !root.Submit("j1").ok();
      }
      disk.Crash(static_cast<uint64_t>(n));
      Root again(disk);
      EXPECT_EQ(again.board().Get("j1").ok(), !failed);
    }
  }
}

// Wherever power fails: an accepted job and its acked records exist afterwards.
TEST(JobBoardTest, AckedRecordsSurviveAPowerFailure) {
  bool failed = true;
  for (int at = 1; failed; ++at) {
    SCOPED_TRACE(at);
    ASSERT_LT(at, 200);
    SimulatedDisk disk;
    bool submitted = false;
    int64_t told = 0;
    {
      Root root(disk);
      disk.PowerOffAt(at);
      submitted = root.Submit("j1").ok();
      for (int64_t i = 1; submitted && i <= 3; ++i) {
        if (!root.Receive("j1", i, std::string(16 * 1024, 'x'), i == 3)) break;
      }
      told = root.Acked();
      failed = disk.powered_off();
    }
    disk.Crash(at);
    Root again(disk);
    const auto view = again.board().Get("j1");
    if (!submitted && !view.ok()) continue;
    ASSERT_TRUE(view.ok()) << view.status();
    int64_t stored = 0;
    const auto log = Journal::Read(disk, view->records_path, [&](std::string_view bytes, int64_t) {
      v1::JobRecord record;
      EXPECT_TRUE(ParseRecord(bytes, &record).ok());
      stored = record.sequence();
      return absl::OkStatus();
    });
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_GE(stored, told);
  }
}

TEST(JobBoardTest, UnreachableNodeThatAttachesLaterDoesNotReceiveTheCommand) {
  SimulatedDisk disk;
  Root root(disk);
  root.Detach("n2");
  ASSERT_TRUE(root.Submit("j1").ok());
  EXPECT_EQ(root.Sent(), std::vector<std::string>{"command n1"});
  ASSERT_TRUE(root.Receive("j1", 1, "", true));
  root.Advance(absl::Seconds(11));
  ASSERT_TRUE(root.HasEnded("j1"));
  EXPECT_EQ(root.Count("j1", v1::JOB_OUTCOME_UNREACHABLE), 1);
  EXPECT_TRUE(Root::Sent(*root.Reattach("n2")).empty());
}

TEST(JobBoardTest, NodeThatIsLostWithTheCommandIsIndeterminateAndCancelledWhenItIsBack) {
  SimulatedDisk disk;
  {
    Root root(disk);
    ASSERT_TRUE(root.Submit("j1").ok());
    ASSERT_TRUE(root.Receive("j1", 1, "", true));
    root.Detach("n2");
    root.Advance(absl::Seconds(11));
    ASSERT_TRUE(root.HasEnded("j1"));
    EXPECT_EQ(root.Count("j1", v1::JOB_OUTCOME_INDETERMINATE), 1);
    EXPECT_EQ(Root::Sent(*root.Reattach("n2")), std::vector<std::string>{"cancel n2"});
  }
  Root again(disk);
  EXPECT_EQ(again.Sent(), std::vector<std::string>{"cancel n2"});
}

TEST(JobBoardTest, CancelAfterARestartReachesTargetsThatRun) {
  SimulatedDisk disk;
  {
    Root root(disk);
    ASSERT_TRUE(root.Submit("j1").ok());
    ASSERT_TRUE(root.ReceiveStarted("j1", "n1"));
  }
  Root again(disk);
  again.Sent();
  ASSERT_TRUE(again.board().Cancel("j1", "spiffe://fleet.test/user/o").ok());
  EXPECT_EQ(again.Sent(), (std::vector<std::string>{"cancel n1", "cancel n2"}));
  EXPECT_EQ(Root::Sent(*again.Reattach("n1")), std::vector<std::string>{"cancel n1"});
}

TEST(JobBoardTest, CancelBeforeARestartIsSentAgainAfterIt) {
  SimulatedDisk disk;
  {
    Root root(disk);
    ASSERT_TRUE(root.Submit("j1").ok());
    ASSERT_TRUE(root.ReceiveStarted("j1", "n1"));
    ASSERT_TRUE(root.board().Cancel("j1", "spiffe://fleet.test/user/o").ok());
  }
  Root again(disk);
  EXPECT_EQ(again.Sent().back(), "cancel n2");
  EXPECT_EQ(again.Count("j1", v1::JOB_OUTCOME_CANCELLED), 0) << "they may run it";
}

TEST(JobBoardTest, FinalRecordThatItsNodeDidNotSignIsNeitherStoredNorAcked) {
  SimulatedDisk disk;
  Root root(disk);
  root.forged = "n1";
  ASSERT_TRUE(root.Submit("j1").ok());
  root.Sent();
  ASSERT_TRUE(root.Receive("j1", 1, "", true, "n1"));
  ASSERT_TRUE(root.Receive("j1", 1, "", true, "n2"));
  EXPECT_EQ(root.Count("j1", v1::JOB_OUTCOME_EXITED), 1);
  EXPECT_EQ(Root::Sent(*root.Reattach("n1")), std::vector<std::string>{"command n1"});
}

// A record that a child session refused never arrives here: the outcome of its node says why it is
// missing.
TEST(JobBoardTest, RefusedRecordIsNamedInTheOutcomeOfItsNode) {
  SimulatedDisk disk;
  Root root(disk);
  ASSERT_TRUE(root.Submit("j1").ok());
  v1::JobRecord record;
  record.set_node("n1");
  record.set_job("another");  // is not running
  root.board().NoteRefused(record, absl::InvalidArgumentError("of no job"));
  record.set_job("j1");
  root.board().NoteRefused(record, absl::InvalidArgumentError("it has no content"));
  record.set_node("stranger");
  root.board().NoteRefused(record, absl::InvalidArgumentError("of no node"));
  while (!root.HasEnded("j1")) root.Advance(absl::Minutes(1));
  const std::string refused = "; a record that arrived was refused: ";
  int named = 0;
  for (const std::string& detail : root.DetailsOf(disk, "j1")) {
    if (detail.find(refused) == detail.npos) continue;
    ++named;
    EXPECT_TRUE(detail.starts_with("n1: ") && detail.ends_with(refused + "it has no content"))
        << detail;
  }
  EXPECT_EQ(named, 1);
}

TEST(JobBoardTest, DroppedFinalRecordsOfANodeAreLoggedOnce) {
  SimulatedDisk disk;
  Root root(disk);
  root.forged = "n2";
  ASSERT_TRUE(root.Submit("j1").ok());
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(root.Receive("j1", 1, "", true, "n2"));
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string line = "a final record of a job is dropped";
  int lines = 0;
  for (size_t at = log.find(line); at != log.npos; at = log.find(line, at + 1)) ++lines;
  EXPECT_EQ(lines, 1) << log;
}

}  // namespace
}  // namespace muster
