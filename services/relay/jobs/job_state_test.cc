#include "services/relay/jobs/job_state.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'750'000'000);

v1::JobRecord Record(const std::string& node, int64_t sequence) {
  v1::JobRecord record;
  record.set_job("j");
  record.set_node(node);
  record.set_sequence(sequence);
  return record;
}

v1::JobRecord Started(const std::string& node, int64_t sequence = 1) {
  v1::JobRecord record = Record(node, sequence);
  record.mutable_started();
  return record;
}

v1::JobRecord Output(const std::string& node, int64_t sequence, const std::string& data) {
  v1::JobRecord record = Record(node, sequence);
  record.mutable_output()->set_data(data);
  return record;
}

v1::JobRecord Exited(const std::string& node, int64_t sequence, int code = 0) {
  v1::JobRecord record = Record(node, sequence);
  record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
  record.mutable_final()->set_exit_code(code);
  return record;
}

// Nodes that are attached, or were until kNow; the command is sent to those that were attached
// once.
class FakeRoutes : public TargetRoutes {
 public:
  FakeRoutes& operator=(const std::set<std::string>& attached) {
    attached_ = attached;
    sent_.insert(attached.begin(), attached.end());
    return *this;
  }
  void clear() { attached_.clear(); }

  Attachment Find(const std::string& node) const override {
    return {attached_.contains(node), since};
  }
  bool WasSent(const std::string& node) const override { return sent_.contains(node); }
  std::vector<std::string> Withdraw(const std::vector<std::string>& nodes) override {
    std::vector<std::string> never_sent;
    for (const std::string& node : nodes) {
      if (!sent_.contains(node)) never_sent.push_back(node);
      withdrawn.insert(node);
    }
    return never_sent;
  }

  absl::Time since = kNow;  // the last change of each
  std::set<std::string> withdrawn;

 private:
  std::set<std::string> attached_;
  std::set<std::string> sent_;
};

class JobStateTest : public ::testing::Test {
 protected:
  static JobState Make(int32_t parallel = 0, int64_t max_output = 1'000) {
    JobState::Plan plan;
    plan.job.set_job("j");
    plan.targets = {"n1", "n2", "n3"};
    plan.parallel = parallel;
    plan.wait = absl::Seconds(10);
    plan.wait_until = kNow + plan.wait;
    plan.begin_until = kNow + absl::Seconds(60);
    plan.time_limit = absl::Seconds(60);
    plan.max_output = max_output;
    return JobState(std::move(plan));
  }
  JobStateTest() { routes_ = {"n1", "n2", "n3"}; }

  static int64_t Count(const JobState& job, v1::JobOutcome outcome) {
    const v1::Job described = job.Describe();
    for (const auto& entry : described.outcomes()) {
      if (entry.outcome() == outcome) return entry.count();
    }
    return 0;
  }

  FakeRoutes routes_;
};

TEST_F(JobStateTest, JobEndsWithTheFinalRecordOfEveryTarget) {
  JobState job = Make();
  EXPECT_EQ(job.Release(kNow, routes_).size(), 3U);
  for (const char* node : {"n1", "n2", "n3"}) {
    EXPECT_EQ(job.Receive(Started(node)).size(), 1U);
    EXPECT_EQ(job.Describe().running(), 1);
    EXPECT_FALSE(job.ended());
    EXPECT_EQ(job.Receive(Exited(node, 2, node[1] - '1')).size(), 1U);
  }
  EXPECT_TRUE(job.ended());
  EXPECT_EQ(job.Describe().state(), v1::JOB_STATE_ENDED);
  EXPECT_EQ(job.Describe().succeeded(), 1);
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_EXITED), 3);
}

TEST_F(JobStateTest, RepeatedRecordIsIgnored) {
  JobState job = Make();
  job.Receive(Started("n1"));
  EXPECT_EQ(job.Receive(Output("n1", 2, "x")).size(), 1U);
  EXPECT_TRUE(job.Receive(Output("n1", 2, "x")).empty());
  EXPECT_TRUE(job.Receive(Started("n1")).empty());
  EXPECT_EQ(job.Reached("n1"), 2);
  EXPECT_EQ(job.Describe().output_bytes(), 1);
}

TEST_F(JobStateTest, RecordAfterAGapIsIgnoredUntilTheMissingOneArrives) {
  JobState job = Make();
  job.Receive(Started("n1"));
  EXPECT_TRUE(job.Receive(Output("n1", 3, "later")).empty());
  EXPECT_EQ(job.Reached("n1"), 1);
  job.Receive(Output("n1", 2, "first"));
  EXPECT_EQ(job.Receive(Output("n1", 3, "later")).size(), 1U);
}

TEST_F(JobStateTest, RecordOfANodeThatIsNoTargetIsIgnored) {
  JobState job = Make();
  EXPECT_TRUE(job.Receive(Exited("n9", 1)).empty());
}

TEST_F(JobStateTest, OutputPastTheLimitIsCutWithAMark) {
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

// A node stops when 64 KiB or 256 records are not acked.
TEST_F(JobStateTest, CutOutputIsAcknowledgedBeforeItsNodeStops) {
  for (const auto& [size, most] : {std::pair<size_t, int64_t>{1, 255}, {32 << 10, 1}}) {
    JobState job = Make(0, 10);
    for (int64_t i = 1; i <= 2'000; ++i) {
      job.Receive(Output("n1", i, std::string(size, 'x')));
      ASSERT_LE(i - job.Reached("n1"), most);
    }
  }
}

TEST_F(JobStateTest, CutOutputIsCountedInTheLogAsFarAsItIsAcknowledged) {
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

TEST_F(JobStateTest, OutputThatFitsAfterCutOutputComesAfterItsMark) {
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

// Whatever a node sends, the log stays small, and its end is taken, also after a restart.
TEST_F(JobStateTest, NodeWithTooManyRecordsIsBoundedAndStillEnds) {
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

TEST_F(JobStateTest, ParallelLimitsTheReleasedTargets) {
  JobState job = Make(1);
  routes_ = {"n2", "n3"};
  EXPECT_EQ(job.Release(kNow, routes_), std::vector<std::string>{"n2"}) << "n1 is away";
  EXPECT_TRUE(job.Release(kNow, routes_).empty());
  job.Receive(Started("n2"));
  EXPECT_TRUE(job.Release(kNow, routes_).empty());
  job.Receive(Exited("n2", 2));
  EXPECT_EQ(job.Release(kNow, routes_), std::vector<std::string>{"n3"});
}

TEST_F(JobStateTest, TargetThatNeverHadARouteIsUnreachableAfterTheWait) {
  JobState job = Make();
  FakeRoutes routes;
  routes = {"n1", "n2"};
  EXPECT_EQ(job.Release(kNow, routes).size(), 3U) << "the dispatcher waits for n3";
  EXPECT_TRUE(job.Tick(kNow + absl::Seconds(9), routes).empty());
  const auto made = job.Tick(kNow + absl::Seconds(11), routes);
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].node(), "n3");
  EXPECT_EQ(made[0].final().outcome(), v1::JOB_OUTCOME_UNREACHABLE);
  EXPECT_EQ(made[0].sequence(), 0);
  EXPECT_TRUE(routes.withdrawn.contains("n3"));
}

// The command is in transit, or on the node.
TEST_F(JobStateTest, LostTargetThatTheCommandWasSentToIsIndeterminateAndCancelled) {
  JobState job = Make();
  job.Release(kNow, routes_);
  job.Receive(Started("n2"));
  routes_ = {"n1"};
  routes_.since = kNow + absl::Seconds(20);
  EXPECT_TRUE(job.Tick(kNow + absl::Seconds(29), routes_).empty()) << "n3 may come back";
  const auto made = job.Tick(kNow + absl::Seconds(30), routes_);
  ASSERT_EQ(made.size(), 1U) << "n2 has started";
  EXPECT_EQ(made[0].node(), "n3");
  EXPECT_EQ(made[0].final().outcome(), v1::JOB_OUTCOME_INDETERMINATE);
  EXPECT_EQ(routes_.withdrawn, std::set<std::string>{"n3"});
  EXPECT_EQ(job.Abandoned(), std::vector<std::string>{"n3"});
}

TEST_F(JobStateTest, AfterARestartTheCommandMayBeOnATargetThatHadNoTurn) {
  JobState job = Make(1);
  job.SetResumed();
  job.Release(kNow, routes_);
  routes_ = {"n1"};
  EXPECT_EQ(job.Tick(kNow + absl::Seconds(11), routes_).size(), 2U);
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_INDETERMINATE), 2);
  EXPECT_EQ(routes_.withdrawn, (std::set<std::string>{"n2", "n3"}));
}

TEST_F(JobStateTest, TargetThatNeverAnswersTimesOut) {
  JobState job = Make();
  job.Release(kNow, routes_);
  job.Receive(Started("n1"));
  EXPECT_TRUE(job.Tick(kNow + absl::Seconds(65), routes_).empty());
  EXPECT_EQ(job.Tick(kNow + absl::Seconds(71), routes_).size(), 2U);
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_TIMED_OUT), 2);
  EXPECT_FALSE(job.ended()) << "n1 runs";
  EXPECT_EQ(job.Tick(kNow + absl::Seconds(131), routes_).size(), 1U);
  EXPECT_TRUE(job.ended());
}

TEST_F(JobStateTest, TargetWhoseTurnNeverCameExpires) {
  JobState job = Make(1);
  job.Release(kNow, routes_);
  job.Receive(Started("n1"));
  job.Tick(kNow + absl::Seconds(61), routes_);
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_EXPIRED), 2);
}

TEST_F(JobStateTest, RecordOfTheNodeReplacesOurs) {
  JobState job = Make();
  job.Release(kNow, routes_);
  routes_.clear();
  job.Tick(kNow + absl::Seconds(11), routes_);
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_INDETERMINATE), 3);
  EXPECT_EQ(job.Receive(Started("n1")).size(), 1U);
  EXPECT_EQ(job.Receive(Exited("n1", 2)).size(), 1U);
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_INDETERMINATE), 2);
  EXPECT_EQ(job.Describe().succeeded(), 1);
  EXPECT_TRUE(job.Receive(Exited("n1", 3, 7)).empty()) << "there is one end";
}

TEST_F(JobStateTest, CancelEndsTargetsThatTheCommandWasNeverSentTo) {
  JobState job = Make(2);
  job.Release(kNow, routes_);
  job.Receive(Started("n1"));
  routes_ = {"n1"};
  const auto made = job.Cancel(kNow, routes_);
  ASSERT_EQ(made.size(), 1U) << "n1 runs, n2 may have the command, n3 waits for its turn";
  EXPECT_EQ(made[0].node(), "n3");
  EXPECT_EQ(made[0].final().outcome(), v1::JOB_OUTCOME_CANCELLED);
  EXPECT_EQ(routes_.withdrawn, (std::set<std::string>{"n1", "n2"})) << "cancelled on the way";
  EXPECT_TRUE(job.Release(kNow, routes_).empty());
  v1::JobRecord end = Exited("n1", 2);
  end.mutable_final()->set_outcome(v1::JOB_OUTCOME_CANCELLED);
  job.Receive(end);
  EXPECT_FALSE(job.ended());
  job.Tick(kNow + absl::Seconds(10), routes_);
  EXPECT_EQ(Count(job, v1::JOB_OUTCOME_INDETERMINATE), 1) << "n2 did not come back";
  EXPECT_EQ(job.Describe().state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(JobStateTest, TargetOutsideTheTopologyIsUnknown) {
  JobState job = Make();
  const auto made = job.EndUnknown(kNow, [](std::string_view node) { return node != "n2"; });
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].final().outcome(), v1::JOB_OUTCOME_UNKNOWN);
  EXPECT_EQ(job.Open(), (std::vector<std::string>{"n1", "n3"}));
}

TEST_F(JobStateTest, ReplayedLogRestoresTheState) {
  JobState job = Make(0, 10);
  std::vector<v1::JobRecord> log;
  const auto keep = [&](std::vector<v1::JobRecord> records) {
    log.insert(log.end(), records.begin(), records.end());
  };
  job.Release(kNow, routes_);
  keep(job.Receive(Started("n1")));
  keep(job.Receive(Output("n1", 2, "12345678")));
  keep(job.Receive(Started("n2")));
  keep(job.Receive(Exited("n2", 2, 3)));
  routes_ = {"n1", "n2"};
  keep(job.Tick(kNow + absl::Seconds(11), routes_));
  JobState next = Make(0, 10);
  for (const v1::JobRecord& record : log) next.Replay(record);
  EXPECT_EQ(next.Describe().SerializeAsString(), job.Describe().SerializeAsString());
  EXPECT_EQ(next.Reached("n1"), 2);
  EXPECT_EQ(next.Open(), std::vector<std::string>{"n1"});
}

TEST_F(JobStateTest, LostBranchIsRecordedIfItHasOpenTargets) {
  JobState job = Make();
  const auto below = [](std::string_view node) { return node != "n3"; };
  const auto made = job.Branch("r1", true, kNow, below);
  ASSERT_EQ(made.size(), 1U);
  EXPECT_TRUE(made[0].branch().lost());
  EXPECT_EQ(made[0].branch().waiting(), 2);
  for (const char* node : {"n1", "n2"}) job.Receive(Exited(node, 1));
  EXPECT_TRUE(job.Branch("r1", false, kNow, below).empty());
}

// Gives the final record the digest of the records, as the node signs it.
std::vector<v1::JobRecord> WithDigest(std::vector<v1::JobRecord> records) {
  RecordsDigest digest;
  for (const v1::JobRecord& record : records) digest.Add(record);
  records.back().mutable_final()->mutable_signature()->set_records_sha256(digest.value());
  return records;
}

TEST_F(JobStateTest, FinalRecordStatesThatTheRecordsAreTheSignedOnes) {
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

TEST_F(JobStateTest, FinalRecordOfTheNodeCountsAfterForgedRecords) {
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
TEST_F(JobStateTest, OmittedOutputIsPartOfTheSignedRecords) {
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
