// The output that a job stores, and how final records prove it.
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/relay/jobs/job_state.h"
#include "services/relay/jobs/job_state_fixture.h"

namespace muster {
namespace {

using JobStateOutputTest = JobStateTest;

// Gives the final record the digest of the records, as the node signs it.
std::vector<v1::JobRecord> WithDigest(std::vector<v1::JobRecord> records) {
  RecordsDigest digest;
  for (const v1::JobRecord& record : records) digest.Add(record);
  records.back().mutable_final()->mutable_signature()->set_records_sha256(digest.value());
  return records;
}

TEST_F(JobStateOutputTest, OutputPastTheLimitIsCutWithAMark) {
  JobState job = Make(0, 10);
  job.Receive(Started("n1"));
  EXPECT_TRUE(job.Receive(Output("n1", 2, "12345678"))[0].has_output());
  const auto mark = job.Receive(Output("n1", 3, "abcdef"));
  ASSERT_EQ(mark.size(), 1U);
  EXPECT_EQ(mark[0].cut().bytes(), 6);
  EXPECT_TRUE(job.Receive(Output("n1", 4, "ghi")).empty()) << "one mark, not one for each piece";
  EXPECT_EQ(job.Reached("n1"), 3) << "the log does not say yet that the rest is cut";
  const auto end = job.Receive(Exited("n1", 5));
  ASSERT_EQ(end.size(), 2U);
  EXPECT_EQ(end[0].cut().bytes(), 3);
  EXPECT_EQ(end[0].sequence(), 4);
  EXPECT_TRUE(end[1].has_final());
  EXPECT_EQ(job.Describe().output_bytes(), 8);
  EXPECT_EQ(job.Describe().cut_bytes(), 9);
}

TEST_F(JobStateOutputTest, CutOutputIsAcknowledgedBeforeItsNodeStops) {
  for (const auto& [size, most] : {std::pair<size_t, int64_t>{1, 255}, {32 << 10, 1}}) {
    JobState job = Make(0, 10);
    for (int64_t i = 1; i <= 2'000; ++i) {
      job.Receive(Output("n1", i, std::string(size, 'x')));
      ASSERT_LE(i - job.Reached("n1"), most);
    }
  }
}

TEST_F(JobStateOutputTest, CutOutputIsCountedInTheLogAsFarAsItIsAcknowledged) {
  JobState job = Make(0, 10);
  JobState next = Make(0, 10);
  for (int64_t i = 1; i <= 1'000; ++i) {
    for (const v1::JobRecord& record : job.Receive(Output("n1", i, "123456"))) next.Replay(record);
    ASSERT_EQ(next.Reached("n1"), job.Reached("n1"));
    ASSERT_EQ(next.Describe().cut_bytes(), job.Describe().cut_bytes());
  }
  for (int64_t i = next.Reached("n1") + 1; i <= 1'000; ++i) next.Receive(Output("n1", i, "123456"));
  EXPECT_EQ(next.Receive(Exited("n1", 1'001)).size(), 2U);
  EXPECT_EQ(next.Describe().cut_bytes(), 999 * 6);
}

TEST_F(JobStateOutputTest, OutputThatFitsAfterCutOutputComesAfterItsMark) {
  JobState job = Make(0, 10);
  job.Receive(Output("n1", 1, "1234567"));
  job.Receive(Output("n1", 2, "too much"));
  EXPECT_TRUE(job.Receive(Output("n1", 3, "as well")).empty());
  const auto taken = job.Receive(Output("n1", 4, "fit"));
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].cut().bytes(), 7);
  EXPECT_EQ(taken[0].sequence(), 3);
  EXPECT_EQ(taken[1].output().data(), "fit");
}

TEST_F(JobStateOutputTest, NodeWithTooManyRecordsIsBoundedAndStillEnds) {
  const auto started = [](int64_t i) { return Started("n1", i); };
  const auto tiny = [](int64_t i) { return Output("n1", i, "x"); };
  const auto large = [](int64_t i) { return Output("n1", i, std::string(30'000, 'x')); };
  for (const auto& make :
       std::vector<std::function<v1::JobRecord(int64_t)>>{started, tiny, large}) {
    JobState job = Make(0, 10);
    JobState next = Make(0, 10);
    size_t bytes = 0;
    for (int64_t i = 1; i <= 50'000; ++i) {
      for (const v1::JobRecord& record : job.Receive(make(i))) {
        bytes += record.ByteSizeLong();
        next.Replay(record);
      }
    }
    EXPECT_LT(bytes, 400'000U);
    const int64_t reached = job.Reached("n1");
    EXPECT_GE(reached, 49'000);
    EXPECT_EQ(Count(job, v1::JOB_OUTCOME_EXITED), 0);
    for (JobState* state : {&job, &next}) {
      for (int64_t i = state == &job ? 50'001 : reached + 1; i <= 50'000; ++i)
        state->Receive(make(i));
      state->Receive(Exited("n1", 50'001));
      EXPECT_EQ(Count(*state, v1::JOB_OUTCOME_EXITED), 1);
    }
    EXPECT_EQ(job.Receive(Started("n2")).size(), 1U) << "another node is not harmed";
  }
}

TEST_F(JobStateOutputTest, FinalRecordStatesThatTheRecordsAreTheSignedOnes) {
  const auto records = WithDigest({Started("n1"), Output("n1", 2, "one"), Exited("n1", 3)});
  JobState job = Make();
  for (const v1::JobRecord& record : records) job.Receive(record);
  JobState changed = Make();
  changed.Receive(records[0]);
  changed.Receive(Output("n1", 2, "two"));
  v1::JobRecord forged = records[2];
  forged.mutable_final()->set_records_verified(true);
  const auto accepted = changed.Receive(forged);
  ASSERT_EQ(accepted.size(), 1U);
  EXPECT_FALSE(accepted[0].final().records_verified());
  JobState whole = Make();
  whole.Receive(records[0]);
  whole.Receive(records[1]);
  EXPECT_TRUE(whole.Receive(records[2])[0].final().records_verified());
}

TEST_F(JobStateOutputTest, FinalRecordOfTheNodeCountsAfterForgedRecords) {
  const auto records = WithDigest({Started("n1"), Output("n1", 2, "one"), Exited("n1", 3)});
  JobState job = Make();
  job.Receive(records[0]);
  for (int sequence = 2; sequence < 30; ++sequence) job.Receive(Output("n1", sequence, "forged"));
  const auto accepted = job.Receive(records[2]);
  ASSERT_EQ(accepted.size(), 1U);
  EXPECT_EQ(accepted[0].final().outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_FALSE(accepted[0].final().records_verified());
}

// The limits on what the log stores do not harm the proof, with a restart after any record.
TEST_F(JobStateOutputTest, OmittedOutputIsPartOfTheSignedRecords) {
  std::vector<v1::JobRecord> records = {Started("n1")};
  for (int64_t i = 2; i <= 300; ++i) records.push_back(Output("n1", i, "123456"));
  records.push_back(Exited("n1", 301));
  records = WithDigest(std::move(records));
  for (const size_t restart : {size_t{1}, size_t{3}, size_t{100}, size_t{299}}) {
    JobState job = Make(0, 10);
    JobState next = Make(0, 10);
    for (size_t i = 0; i < restart; ++i) {
      for (const v1::JobRecord& record : job.Receive(records[i])) next.Replay(record);
    }
    std::vector<v1::JobRecord> last;
    for (size_t i = static_cast<size_t>(next.Reached("n1")); i < records.size(); ++i) {
      last = next.Receive(records[i]);
    }
    ASSERT_FALSE(last.empty());
    EXPECT_TRUE(last.back().final().records_verified()) << restart;
  }
}

}  // namespace
}  // namespace muster
