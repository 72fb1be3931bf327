#include "services/agent/jobs/job_log.h"

#include <cerrno>
#include <memory>

#include "gtest/gtest.h"
#include "services/common/base/simulated_disk.h"

namespace muster {
namespace {

class JobLogTest : public ::testing::Test {
 protected:
  static v1::JobRecord Final() {
    v1::JobRecord record;
    record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
    return record;
  }

  SimulatedDisk disk_;
  std::unique_ptr<RecordOutbox> outbox_ =
      RecordOutbox::Create(disk_, "/records", "j1", "n1").value();
  int stored_ = 0;
  int waits_ = 0;
  bool stops_ = false;
  JobLog log_{{.outbox = *outbox_,
               .job = "j1",
               .on_records = [this] { ++stored_; },
               .stops = [this] { return stops_; },
               .wait = [this](absl::Duration) { ++waits_; }}};
};

TEST_F(JobLogTest, FailedWritesAreRepeated) {
  disk_.FailAt(SimulatedDisk::Call::kWrite, 1, ENOSPC);
  EXPECT_TRUE(log_.Append(Final()));
  EXPECT_EQ(waits_, 1);
  EXPECT_EQ(stored_, 1);
  disk_.FailAt(SimulatedDisk::Call::kSync, 1, EIO);
  EXPECT_TRUE(log_.Sync());
  EXPECT_EQ(waits_, 2);
  outbox_.reset();
  disk_.Crash(1);
  EXPECT_TRUE(RecordOutbox::Open(disk_, "/records", "j1", "n1").value()->has_final());
}

TEST_F(JobLogTest, StopOfTheAgentEndsTheAttempts) {
  stops_ = true;
  disk_.FailAt(SimulatedDisk::Call::kWrite, 1, ENOSPC);
  EXPECT_FALSE(log_.Append(Final()));
  EXPECT_FALSE(outbox_->has_final());
  EXPECT_TRUE(log_.Append(Final()));
  disk_.FailAt(SimulatedDisk::Call::kSync, 1, EIO);
  EXPECT_FALSE(log_.Sync());
  EXPECT_EQ(waits_, 0);
}

TEST_F(JobLogTest, StartIsStoredLaterWithoutAWait) {
  EXPECT_EQ(log_.StoreStart(absl::Seconds(1)), absl::InfiniteDuration());
  log_.SetStart(absl::UnixEpoch());
  disk_.FailAt(SimulatedDisk::Call::kWrite, 1, ENOSPC);
  const absl::Duration next = log_.StoreStart(absl::Seconds(1));
  EXPECT_GT(next, absl::Seconds(1));
  EXPECT_EQ(log_.StoreStart(absl::Seconds(1)), next);
  EXPECT_FALSE(outbox_->content().started);
  EXPECT_EQ(log_.StoreStart(next), absl::InfiniteDuration());
  EXPECT_TRUE(outbox_->content().started);
  log_.FinishStart();
  EXPECT_EQ(stored_, 1) << "it was stored twice";
  EXPECT_EQ(waits_, 0);
}

}  // namespace
}  // namespace muster
