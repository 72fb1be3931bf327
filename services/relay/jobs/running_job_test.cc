#include "services/relay/jobs/running_job.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/relay/jobs/job_folder.h"
#include "services/relay/testing/job_fixture.h"

namespace muster {
namespace {

class RunningJobTest : public testing::JobFixture {
 protected:
  static v1::JobRecord Final(const std::string& node) {
    v1::JobRecord record;
    record.set_job("j1");
    record.set_node(node);
    record.set_sequence(1);
    record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
    return record;
  }
  std::vector<std::string> StoredNodes() {
    std::vector<std::string> nodes;
    const auto read =
        Journal::Read(disk_, RecordsPath("/jobs/j1"), [&](std::string_view bytes, int64_t) {
          v1::JobRecord record;
          EXPECT_TRUE(ParseRecord(bytes, &record).ok());
          nodes.push_back(record.node());
          return absl::OkStatus();
        });
    EXPECT_TRUE(read.ok()) << read.status();
    return nodes;
  }

  const std::shared_ptr<RunningJob> job_ = MakeRunning(Store("j1", {"n1", "n2"}));
};

TEST_F(RunningJobTest, StartDispatchesToKnownNodesAndEndsUnknownOnes) {
  job_->Start();
  EXPECT_EQ(link_->Take().size(), 1U);
  EXPECT_EQ(job_->Describe().outcomes(0).outcome(), v1::JOB_OUTCOME_UNKNOWN);
  EXPECT_EQ(*job_->Store(), true);
  EXPECT_EQ(*job_->Store(), false);
  EXPECT_EQ(StoredNodes(), std::vector<std::string>{"n2"});
}

TEST_F(RunningJobTest, CommandForARelayEndsAtOnce) {
  const auto stream = std::make_shared<RecordedLink>();
  ASSERT_TRUE(topology_.Attach(AttachedEntry("r1", "root", clock_.Now(), true), stream).ok());
  const auto job = MakeRunning(Store("j2", {"r1", "root"}));
  job->Start();
  EXPECT_EQ(stream->Take().size(), 0U);
  ASSERT_TRUE(job->Store().ok());
  EXPECT_TRUE(job->ended());
  int ended = 0;
  ASSERT_TRUE(Journal::Read(disk_, RecordsPath("/jobs/j2"), [&](std::string_view bytes, int64_t) {
                v1::JobRecord record;
                EXPECT_TRUE(ParseRecord(bytes, &record).ok());
                EXPECT_EQ(record.final().outcome(), v1::JOB_OUTCOME_UNKNOWN);
                EXPECT_EQ(record.final().detail(), "it is a relay, which runs no commands");
                ++ended;
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(ended, 2);
}

TEST_F(RunningJobTest, JobEndsWhenTheLastFinalRecordIsStored) {
  job_->Start();
  job_->Receive(Final("n1"));
  EXPECT_FALSE(job_->ended());
  ASSERT_TRUE(job_->Store().ok());
  EXPECT_TRUE(job_->ended());
  EXPECT_EQ(dispatcher_.open(), 0U);
  EXPECT_EQ(job_->Finish()->state(), v1::JOB_STATE_ENDED);
}

TEST_F(RunningJobTest, CancelAfterTheLastFinalRecordChangesNothing) {
  job_->Start();
  job_->Receive(Final("n1"));
  EXPECT_FALSE(*job_->Cancel({"spiffe://fleet.test/user/o", clock_.Now()}));
  ASSERT_TRUE(job_->Store().ok());
  EXPECT_EQ(job_->Finish()->state(), v1::JOB_STATE_ENDED);
}

TEST_F(RunningJobTest, RepeatedEndWritesOnlyWhatAFailedOneDidNot) {
  const auto folder = Store("j2", {"n1"}).folder;
  const std::vector<std::string> abandoned(1'000, std::string(100, 'n'));
  int64_t size = 0;
  for (int i = 0; i < 5; ++i) {
    disk_.FailAt(SimulatedDisk::Call::kSync, 1, EIO);
    ASSERT_FALSE(folder->MarkEnded({}, 0, abandoned).ok());
    const int64_t now = disk_.Stat("/jobs/j2/job")->size;
    if (i > 0) EXPECT_EQ(now, size);
    size = now;
  }
  ASSERT_TRUE(folder->MarkEnded({}, 0, abandoned).ok());
  EXPECT_EQ(JobFolder::Read(disk_, "/jobs/j2")->abandoned.size(), 1'000U);
}

class AbandonedNamesTest : public RunningJobTest {
 protected:
  // Names of many entries.
  static std::vector<std::string> Names(int begin, int end) {
    std::vector<std::string> names;
    for (int i = begin; i < end; ++i) names.push_back(absl::StrCat(i, std::string(200, 'n')));
    return names;
  }
  // Ends the job, and fails at the last entry of the names.
  void FailAtLastNames(JobFolder& folder, const std::vector<std::string>& names) {
    disk_.FailAt(SimulatedDisk::Call::kWrite, 3, ENOSPC);
    ASSERT_FALSE(folder.MarkEnded({}, 0, names).ok());
  }
  std::vector<std::string> Stored() { return JobFolder::Read(disk_, "/jobs/j2")->abandoned; }
  int64_t Size() { return disk_.Stat("/jobs/j2/job")->size; }
};

TEST_F(AbandonedNamesTest, RepeatedEndResumesAfterTheWrittenNames) {
  const auto folder = Store("j2", {"n1"}).folder;
  const auto names = Names(0, 1'000);
  FailAtLastNames(*folder, names);
  const int64_t size = Size();
  for (int i = 0; i < 5; ++i) {
    disk_.FailAt(SimulatedDisk::Call::kWrite, 1, ENOSPC);
    ASSERT_FALSE(folder->MarkEnded({}, 0, names).ok());
    EXPECT_EQ(Size(), size);
  }
  ASSERT_TRUE(folder->MarkEnded({}, 0, names).ok());
  EXPECT_EQ(Stored(), names);
}

TEST_F(AbandonedNamesTest, OtherNamesReplaceThoseOfAFailedEnd) {
  const auto folder = Store("j2", {"n1"}).folder;
  FailAtLastNames(*folder, Names(0, 1'000));
  ASSERT_TRUE(folder->MarkEnded({}, 0, Names(1, 1'000)).ok());
  EXPECT_EQ(Stored(), Names(1, 1'000));
}

TEST_F(AbandonedNamesTest, EndAfterARestartResumesThoseOfAFailedEnd) {
  const auto names = Names(0, 1'000);
  FailAtLastNames(*Store("j2", {"n1"}).folder, names);
  ASSERT_TRUE(JobFolder::Open(disk_, "/jobs/j2").value()->MarkEnded({}, 0, names).ok());
  EXPECT_EQ(Stored(), names);
  EXPECT_LT(Size(), int64_t{250} << 10) << "the names are written once";
}

// The names of the failed end would replace those of the last one, though some are missing.
TEST_F(AbandonedNamesTest, EndThatKeepsTheNamesDiscardsThoseOfAFailedEnd) {
  ASSERT_TRUE(Store("j2", {"n1"}).folder->MarkEnded({}, 0, Names(0, 2'000)).ok());
  FailAtLastNames(*JobFolder::Open(disk_, "/jobs/j2").value(), Names(0, 1'000));
  const auto names = Names(0, 1'500);
  ASSERT_TRUE(JobFolder::Open(disk_, "/jobs/j2").value()->MarkEnded({}, 1, names).ok());
  EXPECT_EQ(Stored(), names);
}

TEST_F(RunningJobTest, AbandonedNodesOfTheLastEndAreKept) {
  const auto end = [&](int64_t records, const std::vector<std::string>& abandoned) {
    const auto folder = JobFolder::Open(disk_, "/jobs/j2").value();
    EXPECT_TRUE(folder->MarkReopened().ok());
    EXPECT_TRUE(folder->MarkEnded({}, records, abandoned).ok());
    return JobFolder::Read(disk_, "/jobs/j2")->abandoned;
  };
  ASSERT_TRUE(
      Store("j2", {"a", "b", "c", "d"}).folder->MarkEnded({}, 0, {"a", "b", "c", "d"}).ok());
  EXPECT_EQ(end(1, {"a", "b", "c"}).size(), 4U) << "they are written again when half is left";
  EXPECT_EQ(end(2, {"a", "b"}), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(end(3, {}), std::vector<std::string>());
  EXPECT_EQ(end(4, {}), std::vector<std::string>());
}

// The audit log may be marked by another writer then.
TEST_F(RunningJobTest, CancelDuringTheEndOfAJobDoesNotWriteAfterIt) {
  const auto folder = Store("j2", {"n1"}).folder;
  ASSERT_TRUE(folder->MarkEnded({}, 0).ok());
  const auto next = JobFolder::Open(disk_, "/jobs/j2");
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_TRUE((*next)->MarkAudited(/*cancellation=*/false).ok());
  EXPECT_FALSE(*folder->MarkCancelled({"spiffe://fleet.test/user/o", clock_.Now()}));
  const auto stored = JobFolder::Read(disk_, "/jobs/j2");
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_TRUE(stored->audit.has_submission);
  EXPECT_FALSE(stored->cancelled);
}

TEST_F(RunningJobTest, EndOfATargetWhoseFinalRecordWasDroppedStatesWhy) {
  job_->Start();
  v1::JobRecord started = Final("n1");
  started.mutable_started();
  job_->Receive(started);
  job_->NoteDropped("n1", absl::UnauthenticatedError("the signature does not match"));
  job_->NoteDropped("n2", absl::UnauthenticatedError("of a target that has ended"));
  job_->Tick();
  clock_.Advance(absl::Minutes(11));
  job_->Tick();
  ASSERT_TRUE(job_->Store().ok());
  std::vector<std::string> details;
  ASSERT_TRUE(Journal::Read(disk_, RecordsPath("/jobs/j1"), [&](std::string_view bytes, int64_t) {
                v1::JobRecord record;
                EXPECT_TRUE(ParseRecord(bytes, &record).ok());
                if (record.node() == "n1" && record.has_final()) {
                  EXPECT_EQ(record.final().reason(), "RECORD_REFUSED");
                  details.push_back(record.final().detail());
                }
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(details,
            std::vector<std::string>{
                "the command may still run; it started, and its final record did not "
                "arrive in time; a record that arrived was refused: the signature does not match"});
}

// The end of a command is decided by the time that passes, not by the date.
TEST_F(RunningJobTest, StepOfTheWallClockDoesNotEndARunningCommand) {
  job_->Start();
  v1::JobRecord started = Final("n1");
  started.mutable_started();
  job_->Receive(started);
  job_->Tick();
  clock_.JumpWall(clock_.Now() + absl::Hours(24));
  job_->Tick();
  EXPECT_EQ(job_->Describe().running(), 1);
  clock_.Advance(absl::Minutes(6));
  job_->Tick();
  EXPECT_EQ(job_->Describe().running(), 0);
}

TEST_F(RunningJobTest, TickRecordsTheLossOfANodeThatRunsTheCommand) {
  job_->Start();
  v1::JobRecord started = Final("n1");
  started.mutable_started();
  job_->Receive(started);
  topology_.Detach("n1", link_.get());
  clock_.Advance(absl::Seconds(5));
  job_->Tick();
  ASSERT_TRUE(job_->Store().ok());
  EXPECT_EQ(StoredNodes(), (std::vector<std::string>{"n2", "n1", ""}));
}

TEST_F(RunningJobTest, StoreAfterAFailureStoresEachRecordOnce) {
  job_->Start();
  job_->Receive(Final("n1"));
  disk_.FailAt(SimulatedDisk::Call::kSync, 1, EIO);
  EXPECT_FALSE(job_->Store().ok());
  ASSERT_TRUE(job_->Store().ok());
  EXPECT_EQ(StoredNodes(), (std::vector<std::string>{"n2", "n1"}));
}

}  // namespace
}  // namespace muster
