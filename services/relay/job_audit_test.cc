#include "services/relay/job_audit.h"

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/errors/identity.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/jobs/job_board.h"
#include "services/relay/testing/job_fixture.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kOperator[] = "spiffe://fleet.test/user/o";

JobAudit::Record Submission(std::vector<std::string> argv, const std::string& job = "j1") {
  JobAudit::Record record;
  record.set_job(job);
  record.set_actor(kOperator);
  record.set_action("exec");
  for (std::string& arg : argv) *record.add_argv() = std::move(arg);
  record.set_targets(3);
  return record;
}

class JobAuditTest : public ::testing::Test {
 protected:
  void Start() {
    audit_ = std::make_unique<JobAudit>(
        JobAudit::Parts{[this](size_t) { return unaudited_; },
                        [this](const JobAudit::Record& record) {
                          marked_.push_back(record.job());
                          std::erase_if(unaudited_, [&](const JobAudit::Record& other) {
                            return other.job() == record.job() &&
                                   other.cancelled() == record.cancelled();
                          });
                          return absl::OkStatus();
                        },
                        [this](const JobAudit::Record& record, JobAudit::Done done) {
                          sent_.push_back(record.job());
                          waiting_.push_back(std::move(done));
                        }},
        clock_, executor_);
    executor_.AwaitIdle();
  }
  void Answer(const absl::Status& answer = absl::OkStatus()) {
    for (const JobAudit::Done& done : std::exchange(waiting_, {})) done(answer);
    executor_.AwaitIdle();
  }
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    executor_.AwaitIdle();
  }
  // Returns what the refusal of the record logs.
  std::string LogOfRefusal(const JobAudit::Record& record) {
    unaudited_ = {record};
    Start();
    ::testing::internal::CaptureStderr();
    Answer(absl::InvalidArgumentError("refused"));
    return ::testing::internal::GetCapturedStderr();
  }

  FakeClock clock_;
  Executor executor_{{"test", 1, 16}};
  std::vector<JobAudit::Record> unaudited_;
  std::vector<std::string> sent_;
  std::vector<JobAudit::Done> waiting_;
  std::vector<std::string> marked_;
  std::unique_ptr<JobAudit> audit_;
};

TEST_F(JobAuditTest, RecordsAreMarkedWhenTheyAreStored) {
  unaudited_ = {Submission({"/bin/true"}, "j1"), Submission({"/bin/true"}, "j2")};
  Start();
  EXPECT_THAT(sent_, ElementsAre("j1", "j2"));
  EXPECT_THAT(marked_, IsEmpty());
  audit_->Wake();
  executor_.AwaitIdle();
  EXPECT_EQ(sent_.size(), 2u) << "they wait for an answer";
  Answer();
  EXPECT_THAT(marked_, ElementsAre("j1", "j2"));
  unaudited_ = {Submission({"/bin/true"}, "j3")};
  audit_->Wake();
  executor_.AwaitIdle();
  EXPECT_THAT(sent_, ElementsAre("j1", "j2", "j3"));
}

TEST_F(JobAuditTest, RecordsOfOneJobAreSentOneAfterTheOther) {
  JobAudit::Record cancellation;
  cancellation.set_job("j1");
  cancellation.set_cancelled(true);
  unaudited_ = {Submission({"/bin/true"}, "j1"), cancellation, Submission({"/bin/true"}, "j2")};
  Start();
  EXPECT_THAT(sent_, ElementsAre("j1", "j2"));
  Answer(absl::UnavailableError("gone"));
  Advance(JobAudit::kRetryAfter);
  EXPECT_THAT(sent_, ElementsAre("j1", "j2", "j1", "j2")) << "the submissions again";
  Answer();
  EXPECT_THAT(sent_, ElementsAre("j1", "j2", "j1", "j2", "j1"));
  Answer();
  EXPECT_THAT(unaudited_, IsEmpty());
}

TEST_F(JobAuditTest, RecordIsSentAgainUntilItIsStored) {
  unaudited_ = {Submission({"/bin/true"})};
  Start();
  Answer(absl::UnavailableError("gone"));
  EXPECT_EQ(sent_.size(), 1u);
  Advance(JobAudit::kRetryAfter);
  EXPECT_EQ(sent_.size(), 2u);
  EXPECT_THAT(marked_, IsEmpty());
  Answer();
  EXPECT_THAT(marked_, ElementsAre("j1"));
}

TEST_F(JobAuditTest, ErrorThatConcernsTheRelayKeepsTheRecord) {
  unaudited_ = {Submission({"/bin/true"})};
  Start();
  const std::vector<absl::Status> answers = {
      absl::PermissionDeniedError("REVOKED: this identity was revoked"),
      errors::NotYours("spiffe://fleet.test/service/relay/r", "RecordJob", "the fleet")};
  for (const absl::Status& answer : answers) {
    Answer(answer);
    EXPECT_THAT(marked_, IsEmpty()) << answer;
    Advance(JobAudit::kRetryAfter);
  }
  Answer(errors::RoleNotAllowed(kOperator, "RecordJob", "operator"));
  EXPECT_THAT(marked_, ElementsAre("j1")) << "the record itself is rejected";
}

TEST_F(JobAuditTest, RefusedRecordIsLoggedWithItsContentAndNotSentAgain) {
  const std::string log = LogOfRefusal(Submission({"/bin/sh", "-c", "one\ntwo"}));
  EXPECT_THAT(log, HasSubstr("job=j1"));
  EXPECT_THAT(log, HasSubstr("user/o"));
  EXPECT_THAT(log, HasSubstr("exec"));
  EXPECT_THAT(log, HasSubstr("/bin/sh -c one\\ntwo"));
  EXPECT_THAT(log, HasSubstr("targets=3"));
  EXPECT_THAT(log, HasSubstr("refused"));
  EXPECT_THAT(marked_, ElementsAre("j1"));
}

TEST_F(JobAuditTest, LongCommandIsCutInTheLog) {
  const std::string log = LogOfRefusal(Submission({std::string(60'000, 'x')}));
  EXPECT_THAT(log, HasSubstr(std::string(1'024, 'x')));
  EXPECT_THAT(log, Not(HasSubstr(std::string(1'025, 'x'))));
}

TEST_F(JobAuditTest, RecordsThatWaitForAnAnswerAreBounded) {
  for (int i = 0; i < 100; ++i) {
    unaudited_.push_back(Submission({std::string(60'000, 'x')}, std::to_string(i)));
  }
  Start();
  EXPECT_GT(sent_.size(), 50u);
  EXPECT_LE(sent_.size() * 60'000, JobAudit::kMaxInFlight);
}

TEST_F(JobAuditTest, AnswerAfterTheEndIsIgnored) {
  unaudited_ = {Submission({"/bin/true"})};
  Start();
  audit_.reset();
  Answer();
  EXPECT_THAT(marked_, IsEmpty());
}

TEST_F(JobAuditTest, WithoutAnAggregatorTheRecordIsNotStored) {
  absl::Status answer;
  SendToAggregator([] { return nullptr; })(Submission({"/bin/true"}),
                                           [&](const absl::Status& status) { answer = status; });
  EXPECT_TRUE(absl::IsUnavailable(answer)) << answer;
}

// The records of a board whose process is killed.
class JobAuditKillTest : public testing::JobFixture {
 protected:
  void Open() {
    board_ = JobBoard::Open({.folder = "/jobs"},
                            {disk_, topology_, dispatcher_, clock_, clock_, executor_, executor_})
                 .value();
  }
  void Kill() {
    disk_.PowerOff();
    board_.reset();
    disk_.Crash(/*seed=*/1);
    Open();
  }
  void Submit(const std::string& job) {
    ASSERT_TRUE(board_->Submit(testing::MakeJobRequest(job, clock_.Now()), kOperator).ok());
  }
  void End(const std::string& job) {
    v1::JobRecords records;
    v1::JobRecord& record = *records.add_records();
    record.set_job(job);
    record.set_node("n1");
    record.set_sequence(1);
    record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
    board_->Receive(std::move(records), [] {});
    executor_.AwaitIdle();
    ASSERT_EQ(board_->Get(job)->job.state(), v1::JOB_STATE_ENDED);
  }
  void MarkAll() {
    for (const JobAudit::Record& record : board_->Unaudited(10)) {
      ASSERT_TRUE(board_->MarkAudited(record).ok());
    }
  }
  // Returns "JOB: ACTOR submitted" or "JOB: ACTOR cancelled" for each record.
  std::vector<std::string> Unaudited() const {
    std::vector<std::string> texts;
    for (const JobAudit::Record& record : board_->Unaudited(10)) {
      texts.push_back(record.job() + ": " + record.actor() +
                      (record.cancelled() ? " cancelled" : " submitted"));
    }
    return texts;
  }

  Executor executor_{{"job-writer", 1, 100}};
  std::unique_ptr<JobBoard> board_;
};

TEST_F(JobAuditKillTest, SubmissionBeforeAKillIsRecordedAfterIt) {
  Open();
  Submit("j");
  Kill();
  EXPECT_THAT(Unaudited(), ElementsAre("j: spiffe://fleet.test/user/o submitted"));
  EXPECT_THAT(board_->Unaudited(10).front().argv(), ElementsAre("/bin/true"));
  MarkAll();
  Kill();
  EXPECT_THAT(Unaudited(), IsEmpty());
}

TEST_F(JobAuditKillTest, CancellationBeforeAKillIsRecordedAfterIt) {
  Open();
  Submit("j");
  MarkAll();
  ASSERT_TRUE(board_->Cancel("j", "spiffe://fleet.test/user/p").ok());
  EXPECT_THAT(Unaudited(), ElementsAre("j: spiffe://fleet.test/user/p cancelled"));
  Kill();
  EXPECT_THAT(Unaudited(), ElementsAre("j: spiffe://fleet.test/user/p cancelled"));
  MarkAll();
  Kill();
  EXPECT_THAT(Unaudited(), IsEmpty());
}

// The aggregator recognises a repeated record by its text, which contains the time.
TEST_F(JobAuditKillTest, RecordHasTheTimeOfItsEventAlsoAfterAKill) {
  Open();
  const absl::Time submitted = clock_.Now();
  Submit("j");
  clock_.Advance(absl::Milliseconds(1) + absl::Nanoseconds(1));  // the job has not ended
  ASSERT_TRUE(board_->Cancel("j", kOperator).ok());
  const auto before = board_->Unaudited(10);
  ASSERT_EQ(before.size(), 2u);
  clock_.Advance(absl::Hours(1));
  Kill();
  const auto after = board_->Unaudited(10);
  ASSERT_EQ(after.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(FromProto(before[i].time()), FromProto(after[i].time()));
    EXPECT_EQ(FromProto(after[i].time()), submitted + absl::Milliseconds(i));
  }
}

// The disk cannot note that the audit log has the job.
TEST_F(JobAuditKillTest, JobWithADamagedJournalIsSentOnceAndRemoved) {
  Open();
  Submit("j");
  End("j");
  disk_.FlipBit("/jobs/j/job", Journal::begin() + static_cast<int64_t>(kFrameHeaderSize));
  int sent = 0;
  JobAudit audit({[this](size_t limit) { return board_->Unaudited(limit); },
                  [this](const auto& record) { return board_->MarkAudited(record); },
                  [&](const auto&, const JobAudit::Done& done) {
                    ++sent;
                    done(absl::OkStatus());
                  }},
                 clock_, executor_);
  executor_.AwaitIdle();
  EXPECT_EQ(sent, 1);
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(JobBoard::Options().retention);
    executor_.AwaitIdle();
  }
  EXPECT_EQ(sent, 1);
  EXPECT_FALSE(board_->Get("j").ok());
  EXPECT_FALSE(disk_.Stat("/jobs/j").ok());
}

TEST_F(JobAuditKillTest, RepeatedCancellationIsNotWritten) {
  Open();
  Submit("j");
  ASSERT_TRUE(board_->Cancel("j", kOperator).ok());
  const int64_t size = disk_.Stat("/jobs/j/job")->size;
  const auto again = board_->Cancel("j", "spiffe://fleet.test/user/p");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->changed);
  EXPECT_EQ(disk_.Stat("/jobs/j/job")->size, size);
}

TEST_F(JobAuditKillTest, RecordNamesTheSameCancellerBeforeAndAfterAKill) {
  Open();
  Submit("j");
  executor_.AwaitIdle();
  disk_.FailAt(SimulatedDisk::Call::kSync, 1, EIO);
  ASSERT_FALSE(board_->Cancel("j", "spiffe://fleet.test/user/p").ok());
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(board_->Cancel("j", "spiffe://fleet.test/user/q").ok());
  const auto records = [this] {
    std::vector<std::string> texts;
    for (const JobAudit::Record& record : board_->Unaudited(10)) {
      texts.push_back(record.ShortDebugString());
    }
    return texts;
  };
  const std::vector<std::string> before = records();
  EXPECT_EQ(before.size(), 2u);
  Kill();
  EXPECT_EQ(records(), before);
}

TEST_F(JobAuditKillTest, JobThatHasEndedIsRecordedAfterAKill) {
  Open();
  Submit("j");
  End("j");
  Kill();
  EXPECT_THAT(Unaudited(), ElementsAre("j: spiffe://fleet.test/user/o submitted"));
  MarkAll();
  Kill();
  EXPECT_THAT(Unaudited(), IsEmpty());
}

}  // namespace
}  // namespace muster
