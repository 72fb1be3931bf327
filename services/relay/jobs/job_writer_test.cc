#include "services/relay/jobs/job_writer.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/executor.h"
#include "services/relay/testing/job_fixture.h"

namespace muster {
namespace {

class JobWriterTest : public testing::JobFixture {
 protected:
  JobWriterTest() {
    Add("j1");
    link_->Take();
    writer_ = std::make_unique<JobWriter>(JobWriter::Parts{
        disk_, clock_, dispatcher_, table_, watchers_, inbox_, clock_, executor_,
        [](const v1::JobRecord& final) {
          return final.final().detail() == "forged" ? absl::UnauthenticatedError("not signed")
                                                    : absl::OkStatus();
        }});
    executor_.AwaitIdle();
  }

  // Adds a running job for n1.
  void Add(const std::string& id) {
    Stored stored = Store(id);
    JobTable::Entry entry;
    entry.folder = "/jobs/" + id;
    entry.job = stored.job;
    const auto job = MakeRunning(std::move(stored));
    entry.running = job;
    table_.Insert(id, std::move(entry));
    job->Start();
  }

  static v1::JobRecord Record(int64_t sequence, const std::string& job = "j1") {
    v1::JobRecord record;
    record.set_job(job);
    record.set_node("n1");
    record.set_sequence(sequence);
    record.mutable_output()->set_data("x");
    return record;
  }
  static v1::JobRecord Final(int64_t sequence, const std::string& detail = "") {
    v1::JobRecord record = Record(sequence);
    record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
    record.mutable_final()->set_detail(detail);
    return record;
  }
  void Receive(const v1::JobRecord& record) {
    v1::JobRecords records;
    *records.add_records() = record;
    inbox_.Add({std::move(records), [this] { ++done_; }});
    executor_.AwaitIdle();
  }
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    executor_.AwaitIdle();
    // A round that began before the new time asks for one that is due now.
    clock_.Advance(absl::ZeroDuration());
    executor_.AwaitIdle();
  }
  // Returns the acked sequences since the last call.
  std::vector<int64_t> Acked() {
    std::vector<int64_t> acked;
    for (const v1::AttachResponse& message : link_->Take()) {
      for (const auto& reached : message.records_ack().reached())
        acked.push_back(reached.sequence());
    }
    return acked;
  }

  JobTable table_{
      {.max_running = 10, .retention = absl::Hours(1), .max_kept = 100, .max_unaudited = 1}};
  JobWatchers watchers_;
  RecordInbox inbox_;
  int done_ = 0;
  Executor executor_{{.name = "job-writer", .threads = 1}};
  std::unique_ptr<JobWriter> writer_;
};

TEST_F(JobWriterTest, RecordsOfAJobThatCouldNotBeReadAreNotAcked) {
  table_.AddUnread("unread");
  Receive(Record(1, "unread"));
  Receive(Record(7, "unknown"));
  Advance(absl::Seconds(2));
  EXPECT_EQ(Acked(), std::vector<int64_t>{7});
  EXPECT_EQ(done_, 2);
}

TEST_F(JobWriterTest, RecordsAreStoredThenAckedTogether) {
  int wakes = 0;
  watchers_.Add("j1", [&] { ++wakes; });
  const int64_t end = table_.FindRunning("j1")->end();
  Receive(Record(1));
  Receive(Record(2));
  EXPECT_EQ(done_, 2);
  EXPECT_EQ(wakes, 2);
  EXPECT_GT(table_.FindRunning("j1")->end(), end);
  EXPECT_TRUE(Acked().empty());
  Advance(absl::Seconds(2));
  EXPECT_EQ(Acked(), std::vector<int64_t>{2});
}

TEST_F(JobWriterTest, FailedWriteIsRepeatedAfterASecondWhateverArrives) {
  disk_.FailAt(SimulatedDisk::Call::kSync, 1, ENOSPC);
  Receive(Record(1));
  EXPECT_EQ(done_, 0);
  Receive(Record(2));
  Advance(absl::Milliseconds(999));
  EXPECT_EQ(done_, 0) << "nothing is read or written meanwhile";
  Advance(absl::Milliseconds(1));
  EXPECT_EQ(done_, 2) << "what arrived meanwhile follows at once";
  Advance(absl::Seconds(2));
  EXPECT_EQ(Acked(), std::vector<int64_t>{2});
}

TEST_F(JobWriterTest, JobEndsWithItsFinalRecordAndIsRemovedAfterItsRetention) {
  Receive(Final(1));
  ASSERT_TRUE(table_.Find("j1").ok());
  EXPECT_EQ(table_.FindRunning("j1"), nullptr);
  EXPECT_EQ(table_.Find("j1")->job.state(), v1::JOB_STATE_ENDED);
  table_.MarkAudited("j1", /*cancellation=*/false);
  Advance(absl::Minutes(61));
  EXPECT_FALSE(table_.Find("j1").ok());
  EXPECT_TRUE(disk_.List("/jobs")->empty());
}

TEST_F(JobWriterTest, JobThatTheAuditLogLacksLosesItsOutputAfterItsRetention) {
  Receive(Final(1));
  Advance(absl::Minutes(61));
  EXPECT_EQ(disk_.Stat("/jobs/j1/records").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(disk_.Stat("/jobs/j1/job").ok());
  EXPECT_EQ(table_.Unaudited(9).size(), 1u);
  table_.MarkAudited("j1", /*cancellation=*/false);
  Advance(absl::Seconds(1));
  EXPECT_TRUE(disk_.List("/jobs")->empty());
}

TEST_F(JobWriterTest, AuditRecordsOfAJobThatIsRemovedWithoutThemAreLogged) {
  Add("j2");
  Receive(Final(1));
  table_.SetCancelled("j1", "spiffe://fleet.test/user/p", clock_.Now());
  ::testing::internal::CaptureStderr();
  Advance(absl::Minutes(61));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_FALSE(table_.Find("j1").ok());
  EXPECT_NE(log.find("event=submitted"), std::string::npos) << log;
  EXPECT_NE(log.find("event=cancelled"), std::string::npos) << log;
}

TEST_F(JobWriterTest, FinalRecordThatTheNodeDidNotSignIsDropped) {
  Receive(Final(1, "forged"));
  EXPECT_EQ(done_, 1);
  Advance(absl::Seconds(2));
  EXPECT_TRUE(Acked().empty());
  EXPECT_NE(table_.FindRunning("j1"), nullptr);
  Receive(Final(1));
  EXPECT_EQ(table_.FindRunning("j1"), nullptr);
}

TEST_F(JobWriterTest, RecordOfAnUnknownJobIsAckedSoThatItsNodeDeletesIt) {
  Receive(Record(7, "long-ago"));
  Advance(absl::Seconds(2));
  EXPECT_EQ(Acked(), std::vector<int64_t>{7});
}

TEST_F(JobWriterTest, TargetThatDoesNotAnswerIsEndedByTime) {
  Advance(absl::Minutes(6));
  EXPECT_EQ(table_.FindRunning("j1"), nullptr);
  EXPECT_EQ(table_.Find("j1")->job.outcomes(0).outcome(), v1::JOB_OUTCOME_TIMED_OUT);
}

TEST_F(JobWriterTest, RecordThatWaitsForTheWriterCountsBeforeItsTargetIsEnded) {
  v1::JobRecord started = Record(1);
  started.mutable_started();
  Receive(started);
  Advance(absl::Seconds(1));
  std::promise<void> busy;
  ASSERT_TRUE(executor_.Post([&] { busy.get_future().wait(); }));
  v1::JobRecords records;
  *records.add_records() = Record(2);
  inbox_.Add({std::move(records), [this] { ++done_; }});
  clock_.Advance(absl::Minutes(6));
  busy.set_value();
  executor_.AwaitIdle();
  EXPECT_NE(table_.FindRunning("j1"), nullptr);
  Receive(Final(3));
  EXPECT_EQ(table_.FindRunning("j1"), nullptr);
  EXPECT_EQ(table_.Find("j1")->job.outcomes(0).outcome(), v1::JOB_OUTCOME_EXITED);
}

TEST_F(JobWriterTest, NothingIsHandledAfterTheEnd) {
  writer_.reset();
  Receive(Record(1));
  Advance(absl::Minutes(1));
  EXPECT_EQ(done_, 0);
}

}  // namespace
}  // namespace muster
