#include "services/relay/jobs/job_board.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "services/common/base/fake_clock.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/testing/recorded_link.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kPatience(30);

// A relay at the centre as far as jobs are concerned, with n1 and n2; what it wrote outlives it.
class Centre {
 public:
  explicit Centre(FileOps& disk, int64_t max_output = int64_t{1} << 20) {
    for (const char* node : {"n1", "n2"}) {
      EXPECT_TRUE(tree_.Attach(AttachedEntry(node, "root", clock_.Now()), link_).ok());
    }
    auto board = JobBoard::Open({.folder = "/jobs", .max_output = max_output}, disk, tree_,
                                dispatcher_, clock_);
    EXPECT_TRUE(board.ok()) << board.status();
    board_ = *std::move(board);
  }

  JobBoard& board() { return *board_; }
  FakeClock& clock() { return clock_; }

  absl::Status Submit(const std::string& job) {
    v1::Command command;
    command.set_job(job);
    command.mutable_targets()->set_all(true);
    command.add_argv("/bin/true");
    ToProto(clock_.Now(), command.mutable_not_before());
    ToProto(clock_.Now() + absl::Minutes(5), command.mutable_not_after());
    ToProto(absl::Minutes(5), command.mutable_time_limit());
    v1::SubmitJobRequest message;
    message.mutable_command()->set_command(command.SerializeAsString());
    auto request = ReadJobRequest(std::move(message));
    EXPECT_TRUE(request.ok()) << request.status();
    return board_->Submit(*std::move(request), "spiffe://fleet.test/operator/o").status();
  }

  // Hands over a record. True when it was stored, false when the disk did not let that be.
  bool Take(const std::string& job, int64_t sequence, const std::string& output, bool final,
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
    auto stored = std::make_shared<std::promise<void>>();
    board_->Take(std::move(records), [stored] { stored->set_value(); });
    return stored->get_future().wait_for(patience) == std::future_status::ready;
  }

  // The highest number that n1 was told it may forget.
  int64_t Acknowledged() {
    for (const v1::AttachResponse& message : link_->Take()) {
      for (const auto& reached : message.records_ack().reached())
        acknowledged_ = reached.sequence();
    }
    return acknowledged_;
  }

  // How many nodes ended with this outcome.
  int64_t Count(const std::string& job, v1::JobOutcome outcome) {
    const auto view = board_->Get(job);
    EXPECT_TRUE(view.ok()) << view.status();
    for (const v1::JobOutcomeCount& entry : view->job.outcomes()) {
      if (entry.outcome() == outcome) return entry.count();
    }
    return 0;
  }

  std::chrono::milliseconds patience = kPatience;

 private:
  FakeClock clock_;
  Topology tree_{{.name = "root"}, clock_};
  CommandDispatcher dispatcher_{tree_, clock_};
  std::shared_ptr<RecordedLink> link_ = std::make_shared<RecordedLink>();
  int64_t acknowledged_ = 0;
  std::unique_ptr<JobBoard> board_;
};

template <typename Condition>
bool Until(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(JobBoardTest, RecordsThatNobodyWaitsForAreAcknowledgedTogether) {
  SimulatedDisk disk;
  Centre centre(disk);
  ASSERT_TRUE(centre.Submit("j1").ok());
  ASSERT_TRUE(centre.Take("j1", 1, "a line\n", false));
  ASSERT_TRUE(centre.Take("j1", 2, "another\n", false));
  EXPECT_EQ(centre.Acknowledged(), 0);
  centre.clock().Advance(absl::Seconds(2));
  EXPECT_TRUE(Until([&] { return centre.Acknowledged() == 2; }));
}

TEST(JobBoardTest, ANodeWithMuchOnItsWayDoesNotWaitForItsAcknowledgement) {
  SimulatedDisk disk;
  Centre centre(disk);
  ASSERT_TRUE(centre.Submit("j1").ok());
  ASSERT_TRUE(centre.Take("j1", 1, std::string(16 * 1024, 'x'), false));
  EXPECT_TRUE(Until([&] { return centre.Acknowledged() == 1; }));
  for (int64_t i = 2; i <= 65; ++i) ASSERT_TRUE(centre.Take("j1", i, "x", false));
  EXPECT_TRUE(Until([&] { return centre.Acknowledged() == 65; }));
}

TEST(JobBoardTest, ARecordOfAJobThatIsOverIsAcknowledged) {
  SimulatedDisk disk;
  Centre centre(disk);
  ASSERT_TRUE(centre.Take("long-ago", 7, "x", false));
  centre.clock().Advance(absl::Seconds(2));
  EXPECT_TRUE(Until([&] { return centre.Acknowledged() == 7; }));
}

TEST(JobBoardTest, OversizedRecordOfOneNodeLeavesTheRecordsOfOthers) {
  SimulatedDisk disk;
  {
    Centre centre(disk);
    ASSERT_TRUE(centre.Submit("j1").ok());
    ASSERT_TRUE(centre.Take("j1", 1, std::string(100 * 1024, 'x'), false, "n1"));
    ASSERT_TRUE(centre.Take("j1", 1, "", true, "n2"));
    EXPECT_EQ(centre.Count("j1", v1::JOB_OUTCOME_EXITED), 1);
  }
  Centre again(disk);
  EXPECT_EQ(again.Count("j1", v1::JOB_OUTCOME_EXITED), 1);
}

TEST(JobBoardTest, OutputPastTheLimitSurvivesARestart) {
  SimulatedDisk disk;
  int64_t acknowledged = 0;
  int64_t cut = 0;
  {
    Centre centre(disk, 10);
    ASSERT_TRUE(centre.Submit("j1").ok());
    for (int64_t i = 1; i <= 200; ++i) ASSERT_TRUE(centre.Take("j1", i, "123456", false));
    centre.clock().Advance(absl::Seconds(2));
    ASSERT_TRUE(Until([&] { return centre.Acknowledged() > 100; }));
    acknowledged = centre.Acknowledged();
    cut = centre.board().Get("j1")->job.cut_bytes();
  }
  Centre again(disk, 10);
  EXPECT_EQ(again.board().Get("j1")->job.cut_bytes(), cut);
  // The node sends again what was not acknowledged, and nothing else.
  for (int64_t i = acknowledged + 1; i <= 200; ++i) {
    ASSERT_TRUE(again.Take("j1", i, "123456", false));
  }
  ASSERT_TRUE(again.Take("j1", 201, "", true));
  EXPECT_EQ(again.Count("j1", v1::JOB_OUTCOME_EXITED), 1);
  EXPECT_EQ(again.board().Get("j1")->job.cut_bytes(), 199 * 6);
}

TEST(JobBoardTest, JobWhoseSubmissionFailedNeverRuns) {
  using Call = SimulatedDisk::Call;
  for (const Call call : {Call::kCreate, Call::kOpen, Call::kWrite, Call::kSync, Call::kRename,
                          Call::kSyncFolder, Call::kMakeFolder, Call::kStat}) {
    bool failed = true;
    for (int n = 1; failed; ++n) {
      SCOPED_TRACE(testing::Message() << "call " << static_cast<int>(call) << " n " << n);
      ASSERT_LT(n, 50);
      SimulatedDisk disk;
      {
        Centre centre(disk);
        disk.FailAt(call, n, EIO);
        failed = !centre.Submit("j1").ok();
      }
      disk.Crash(static_cast<uint64_t>(n));
      Centre again(disk);
      EXPECT_EQ(again.board().Get("j1").ok(), !failed);
    }
  }
}

// Wherever power fails: a job that was accepted, and what the node was told to be stored, are there
// afterwards.
TEST(JobBoardTest, WhatWasAcknowledgedSurvivesAPowerFailure) {
  bool failed = true;
  for (int at = 1; failed; ++at) {
    SCOPED_TRACE(at);
    ASSERT_LT(at, 200);
    SimulatedDisk disk;
    bool submitted = false;
    int64_t told = 0;
    {
      Centre centre(disk);
      disk.PowerOffAt(at);
      centre.patience = std::chrono::milliseconds(200);
      submitted = centre.Submit("j1").ok();
      for (int64_t i = 1; submitted && i <= 3; ++i) {
        if (!centre.Take("j1", i, std::string(16 * 1024, 'x'), i == 3)) break;
      }
      told = centre.Acknowledged();
      failed = disk.powered_off();
    }
    disk.Crash(at);
    Centre again(disk);
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

}  // namespace
}  // namespace muster
