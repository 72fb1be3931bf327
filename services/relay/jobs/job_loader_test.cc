#include "services/relay/jobs/job_loader.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/common/base/error.h"
#include "services/common/base/simulated_disk.h"
#include "services/relay/jobs/audit_records.h"
#include "services/relay/jobs/job_folder.h"
#include "services/relay/testing/job_fixture.h"

namespace muster {
namespace {

class JobLoaderTest : public testing::JobFixture {
 protected:
  absl::Status Load() { return LoadJobs(disk_, "/jobs", kMaxOutput, fleet_, table_); }

  // Stores a job for n1 with these records, as an earlier process did.
  std::unique_ptr<JobFolder> StoreRecords(const std::string& id,
                                          const std::vector<v1::JobRecord>& records) {
    Stored stored = Store(id);
    for (const v1::JobRecord& record : records) {
      EXPECT_TRUE(stored.log->Append(record.SerializeAsString()).ok());
    }
    EXPECT_TRUE(stored.log->Sync().ok());
    job_ = stored.job;
    end_ = stored.log->end();
    return std::move(stored.folder);
  }
  static v1::JobRecord Final(v1::JobOutcome outcome, int64_t sequence) {
    v1::JobRecord record;
    record.set_node("n1");
    record.set_sequence(sequence);
    record.mutable_final()->set_outcome(outcome);
    return record;
  }
  std::vector<std::string> Sent() {
    std::vector<std::string> sent;
    for (const v1::AttachResponse& message : link_->Take()) {
      if (message.has_command()) sent.push_back("command " + message.command().job());
      if (message.has_cancel()) sent.push_back("cancel " + message.cancel().job());
    }
    return sent;
  }

  JobTable table_{{.max_running = 10, .retention = absl::Hours(1), .max_kept = 100}};
  v1::Job job_;      // the last one of StoreRecords, as the next
  int64_t end_ = 0;  // of its records
};

TEST_F(JobLoaderTest, MissingFolderIsCreated) {
  ASSERT_TRUE(Load().ok());
  EXPECT_TRUE(disk_.List("/jobs")->empty());
}

TEST_F(JobLoaderTest, JobThatCannotBeReadNowKeepsItsIdAndTheRecordsOfItsNodes) {
  Store("j1");
  disk_.FailAt(SimulatedDisk::Call::kRead, 1, EIO);
  ASSERT_TRUE(Load().ok());
  EXPECT_FALSE(table_.Find("j1").ok());
  EXPECT_TRUE(table_.IsUnread("j1"));
  EXPECT_TRUE(absl::IsUnavailable(table_.Reserve("j1", "spiffe://fleet.test/user/o")));
  JobTable next{{.max_running = 10, .retention = absl::Hours(1), .max_kept = 100}};
  ASSERT_TRUE(LoadJobs(disk_, "/jobs", kMaxOutput, fleet_, next).ok());
  EXPECT_NE(next.FindRunning("j1"), nullptr);
  EXPECT_FALSE(next.IsUnread("j1"));
}

TEST_F(JobLoaderTest, RunningJobIsContinued) {
  Store("j1");
  ASSERT_TRUE(Load().ok());
  const auto job = table_.FindRunning("j1");
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(job->Describe().targets(), 1);
  EXPECT_EQ(Sent(), std::vector<std::string>{"command j1"});
}

TEST_F(JobLoaderTest, CancelledJobIsCancelledAgain) {
  ASSERT_TRUE(Store("j1").folder->MarkCancelled({"spiffe://fleet.test/user/o", clock_.Now()}).ok());
  ASSERT_TRUE(Load().ok());
  EXPECT_NE(table_.FindRunning("j1"), nullptr);
  EXPECT_EQ(Sent().back(), "cancel j1");
}

// Its caller got an error, and the job ended without it.
TEST_F(JobLoaderTest, CancellationThatFailedDoesNotAppearAfterTheEndOfTheJob) {
  const auto folder = StoreRecords("j1", {Final(v1::JOB_OUTCOME_EXITED, 1)});
  disk_.FailAt(SimulatedDisk::Call::kSync, 1, EIO);
  EXPECT_FALSE(folder->MarkCancelled({"spiffe://fleet.test/user/o", clock_.Now()}).ok());
  job_.set_state(v1::JOB_STATE_ENDED);
  ASSERT_TRUE(folder->MarkEnded(job_, end_).ok());
  const auto stored = JobFolder::Read(disk_, "/jobs/j1");
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_TRUE(stored->ended);
  EXPECT_FALSE(stored->cancelled);
  EXPECT_EQ(stored->audit.cancelled_by, "");
  ASSERT_TRUE(Load().ok());
  for (const v1::RecordJobRequest& record : MissingAuditRecords(*table_.Find("j1"))) {
    EXPECT_FALSE(record.cancelled());
  }
}

TEST_F(JobLoaderTest, CancellationThatSucceededAtTheSecondCallStaysAfterTheEndOfTheJob) {
  const auto folder = StoreRecords("j1", {Final(v1::JOB_OUTCOME_EXITED, 1)});
  disk_.FailAt(SimulatedDisk::Call::kSync, 1, EIO);
  const absl::Time first = clock_.Now();
  EXPECT_FALSE(folder->MarkCancelled({"spiffe://fleet.test/user/o", first}).ok());
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(folder->MarkCancelled({"spiffe://fleet.test/user/p", clock_.Now()}).ok());
  ASSERT_TRUE(folder->MarkEnded(job_, end_).ok());
  const auto stored = JobFolder::Read(disk_, "/jobs/j1");
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->audit.cancelled_by, "spiffe://fleet.test/user/o");
  EXPECT_EQ(stored->audit.cancelled_at, first);
}

TEST_F(JobLoaderTest, FinishedJobIsListedAndNotSent) {
  const auto folder = StoreRecords("j1", {Final(v1::JOB_OUTCOME_EXITED, 1)});
  job_.set_state(v1::JOB_STATE_ENDED);
  ASSERT_TRUE(folder->MarkEnded(job_, end_).ok());
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(table_.FindRunning("j1"), nullptr);
  EXPECT_EQ(table_.Find("j1")->job.state(), v1::JOB_STATE_ENDED);
  EXPECT_EQ(table_.Find("j1")->end, end_);
  EXPECT_TRUE(Sent().empty());
}

TEST_F(JobLoaderTest, FinishedJobWithoutOutputIsLoadedForTheAuditLog) {
  const auto folder = StoreRecords("j1", {Final(v1::JOB_OUTCOME_EXITED, 1)});
  ASSERT_TRUE(folder->MarkEnded(job_, end_).ok());
  ASSERT_TRUE(disk_.Remove(RecordsPath("/jobs/j1")).ok());
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(ReasonOf(table_.Find("j1").status()), "JOB_NOT_FOUND");
  ASSERT_EQ(table_.Unaudited(9).size(), 1u);
  EXPECT_EQ(table_.Unaudited(9)[0].job.job(), "j1");
}

TEST_F(JobLoaderTest, AuditRecordOfAJobWithoutArgumentsNamesItsClasses) {
  JobTable::Entry entry;
  entry.job.set_action("rudder");
  entry.job.add_classes("info");
  entry.job.add_classes("debug");
  const auto records = MissingAuditRecords(entry);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(absl::StrJoin(records[0].argv(), " "), "-D info,debug");
}

TEST_F(JobLoaderTest, FinishedJobIsCancelledOnNodesThatWereGivenUpUntilItsDeadline) {
  const auto folder = StoreRecords("j1", {Final(v1::JOB_OUTCOME_INDETERMINATE, 0)});
  ASSERT_TRUE(folder->MarkEnded(job_, end_).ok());
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(Sent(), std::vector<std::string>{"cancel j1"});
  clock_.Advance(absl::Hours(1));
  ASSERT_TRUE(Load().ok());
  EXPECT_TRUE(Sent().empty());
}

// A job is loaded unchanged, or its files stay for a person: it is never loaded with other content,
// and never removed.
TEST_F(JobLoaderTest, JobWithAFlippedBitIsLoadedUnchangedOrLeftOut) {
  StoreRecords("j1", {Final(v1::JOB_OUTCOME_EXITED, 1)});
  int left_out = 0;
  for (const char* path : {"/jobs/j1/job", "/jobs/j1/records"}) {
    const int64_t size = disk_.Stat(path)->size;
    for (int64_t at = 0; at < size; ++at) {
      SCOPED_TRACE(absl::StrCat(path, " at ", at));
      disk_.FlipBit(path, at);
      JobTable table({.max_running = 10, .retention = absl::Hours(1), .max_kept = 100});
      ASSERT_TRUE(LoadJobs(disk_, "/jobs", kMaxOutput, fleet_, table).ok());
      ASSERT_EQ(disk_.Stat(path)->size, size);
      disk_.FlipBit(path, at);
      const auto job = table.FindRunning("j1");
      if (job == nullptr) {
        ++left_out;
        continue;
      }
      EXPECT_EQ(job->Describe().submitted_by(), job_.submitted_by());
      EXPECT_EQ(job->end(), end_);
      EXPECT_TRUE(job->ended());
      const int64_t in_mark = at - (size - static_cast<int64_t>(kFrameHeaderSize));
      EXPECT_TRUE(in_mark >= 0 || (at >= 36 && at < Journal::begin()));
    }
  }
  EXPECT_GT(left_out, 200);
}

TEST_F(JobLoaderTest, JobWhoseCreationWasInterruptedIsRemoved) {
  ASSERT_TRUE(MakeFolders(disk_, "/jobs/j1").ok());
  ASSERT_TRUE(Load().ok());
  EXPECT_TRUE(disk_.List("/jobs")->empty());
}

}  // namespace
}  // namespace muster
