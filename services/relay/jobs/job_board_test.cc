#include "services/relay/jobs/job_board.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/simulated_disk.h"
#include "services/relay/testing/job_fixture.h"
#include "services/relay/testing/recorded_link.h"

namespace muster {
namespace {

// The jobs of a root relay with n1 and n2, on a disk that outlives it.
class Root {
 public:
  explicit Root(FileOps& disk, int64_t max_output = int64_t{1} << 20) {
    for (const char* node : {"n1", "n2"}) Attach(node, link_);
    topology_.Listen(
        [this](const std::vector<std::string>& names) { dispatcher_.OnReachable(names); }, {});
    JobBoard::Options options{.folder = "/jobs", .max_output = max_output};
    options.verify = [this](const v1::JobRecord& final) {
      return final.node() == forged ? absl::UnauthenticatedError("forged") : absl::OkStatus();
    };
    options.explain = [this](const std::vector<std::string>& nodes) {
      if (on_lookup) std::exchange(on_lookup, nullptr)();
      looked_up = nodes;
      return RunningJob::Explanations{{"revoked", "it was revoked"}};
    };
    auto board = JobBoard::Open(std::move(options),
                                {disk, topology_, dispatcher_, clock_, clock_, executor_});
    EXPECT_TRUE(board.ok()) << board.status();
    board_ = *std::move(board);
    executor_.AwaitIdle();
  }

  JobBoard& board() { return *board_; }
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    executor_.AwaitIdle();
    // A round that began before the new time asks for one that is due now.
    clock_.Advance(absl::ZeroDuration());
    executor_.AwaitIdle();
  }

  absl::Status Submit(const std::string& job) {
    return board_
        ->Submit(testing::MakeJobRequest(job, clock_.Now()), "spiffe://fleet.test/operator/o")
        .status();
  }

  // Submits a job for named nodes; returns the details of the final records of this relay.
  std::vector<std::string> DetailsOf(FileOps& disk, const std::string& job,
                                     std::vector<std::string> nodes) {
    JobRequest request = testing::MakeJobRequest(job, clock_.Now());
    request.targets = std::make_shared<const TargetSet>(std::move(nodes));
    EXPECT_TRUE(board_->Submit(std::move(request), "spiffe://fleet.test/operator/o").ok());
    executor_.AwaitIdle();
    std::vector<std::string> details;
    const auto read =
        Journal::Read(disk, board_->Get(job)->records_path, [&](std::string_view bytes, int64_t) {
          v1::JobRecord record;
          EXPECT_TRUE(ParseRecord(bytes, &record).ok());
          details.push_back(record.node() + ": " + record.final().detail());
          return absl::OkStatus();
        });
    EXPECT_TRUE(read.ok()) << read.status();
    return details;
  }

  // Delivers a record. Returns true when it was stored, false if the disk failed.
  bool Receive(const std::string& job, int64_t sequence, const std::string& output, bool final,
               const std::string& node = "n1") {
    v1::JobRecords records;
    v1::JobRecord& record = *records.add_records();
    record.set_job(job);
    record.set_node(node);
    record.set_sequence(sequence);
    if (final) {
      record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
    } else {
      record.mutable_output()->set_stream(v1::JOB_STREAM_STDOUT);
      record.mutable_output()->set_data(output);
    }
    return ReceiveAll(std::move(records));
  }
  bool ReceiveAll(v1::JobRecords records) {
    const auto stored = std::make_shared<bool>(false);
    board_->Receive(std::move(records), [stored] { *stored = true; });
    executor_.AwaitIdle();
    return *stored;
  }

  bool ReceiveStarted(const std::string& job, const std::string& node) {
    v1::JobRecords records;
    v1::JobRecord& record = *records.add_records();
    record.set_job(job);
    record.set_node(node);
    record.set_sequence(1);
    record.mutable_started();
    return ReceiveAll(std::move(records));
  }

  void Attach(const std::string& node, std::shared_ptr<RecordedLink> link) {
    EXPECT_TRUE(topology_.Attach(AttachedEntry(node, "root", clock_.Now()), std::move(link)).ok());
  }
  std::shared_ptr<RecordedLink> Reattach(const std::string& node) {
    auto link = std::make_shared<RecordedLink>();
    Attach(node, link);
    return link;
  }
  void Detach(const std::string& node) { topology_.Detach(node, topology_.Route(node).get()); }

  bool HasEnded(const std::string& job) const {
    return board_->Get(job)->job.state() != v1::JOB_STATE_RUNNING;
  }

  // Returns "command" or "cancel" for each message to the nodes of the start.
  std::vector<std::string> Sent() { return Sent(*link_); }
  static std::vector<std::string> Sent(RecordedLink& link) {
    std::vector<std::string> sent;
    for (const v1::AttachResponse& message : link.Take()) {
      for (const auto& target : message.command().targets()) {
        sent.push_back("command " + target.node());
      }
      for (const std::string& node : message.cancel().nodes()) sent.push_back("cancel " + node);
    }
    return sent;
  }

  // Returns the highest acked sequence of n1.
  int64_t Acked() {
    for (const v1::AttachResponse& message : link_->Take()) {
      for (const auto& reached : message.records_ack().reached()) acked_ = reached.sequence();
    }
    return acked_;
  }

  // Returns the number of nodes with this outcome.
  int64_t Count(const std::string& job, v1::JobOutcome outcome) {
    const auto view = board_->Get(job);
    EXPECT_TRUE(view.ok()) << view.status();
    for (const v1::JobOutcomeCount& entry : view->job.outcomes()) {
      if (entry.outcome() == outcome) return entry.count();
    }
    return 0;
  }

  std::function<void()> on_lookup;     // called once
  std::vector<std::string> looked_up;  // in the register
  std::string forged;  // the node whose final records are not authentic; set before they arrive

 private:
  FakeClock clock_;
  Executor executor_{{.name = "job-writer", .threads = 1}};
  Topology topology_{{.name = "root"}, clock_};
  CommandDispatcher dispatcher_{topology_, clock_};
  std::shared_ptr<RecordedLink> link_ = std::make_shared<RecordedLink>();
  int64_t acked_ = 0;
  std::unique_ptr<JobBoard> board_;
};

TEST(JobBoardTest, RegisterExplainsAnUnknownTarget) {
  SimulatedDisk disk;
  Root root(disk);
  EXPECT_EQ(root.DetailsOf(disk, "j1", {"n1", "revoked", "away"}),
            (std::vector<std::string>{
                "away: no node of this name is attached, or was within the last week",
                "revoked: it was revoked"}));
  EXPECT_EQ(root.looked_up, (std::vector<std::string>{"away", "revoked"}));
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
