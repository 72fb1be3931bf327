#include "services/relay/jobs/job_board.h"

#include <gtest/gtest.h>

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

// A relay at the centre as far as jobs are concerned, with the node n1; what it wrote outlives it.
class Centre {
 public:
  explicit Centre(FileOps& disk) {
    EXPECT_TRUE(tree_.Attach(AttachedEntry("n1", "root", clock_.Now()), link_).ok());
    auto board = JobBoard::Open({.folder = "/jobs"}, disk, tree_, courier_, clock_);
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

  // Hands over a record of n1. True when it was stored, false when the disk did not let that be.
  bool Take(const std::string& job, int64_t sequence, const std::string& output, bool final) {
    v1::JobRecords records;
    v1::JobRecord& record = *records.add_records();
    record.set_job(job);
    record.set_node("n1");
    record.set_sequence(sequence);
    if (final) {
      record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
    } else {
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

  std::chrono::milliseconds patience = kPatience;

 private:
  FakeClock clock_;
  Tree tree_{{.name = "root"}, clock_};
  Courier courier_{tree_, clock_};
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
    const auto log = RecordLog::Open(
        disk, view->records_path, [&](const v1::JobRecord& record) { stored = record.sequence(); });
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_GE(stored, told);
  }
}

}  // namespace
}  // namespace muster
