#include "services/relay/jobs/late_jobs.h"

#include <functional>
#include <future>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LateJobsTest : public ::testing::Test {
 protected:
  LateJobsTest() {
    for (const char* id : {"j1", "j2", "j3", "j4", "j5", "j6"}) {
      JobTable::Entry entry;
      entry.folder = id;
      entry.job.set_job(id);
      entry.abandoned = JobTable::SetOf({"a", "b", "c", "d", "e"});
      table_.Insert(id, std::move(entry));
    }
  }

  static v1::JobRecord Record(const std::string& job, const std::string& node, size_t output = 1) {
    v1::JobRecord record;
    record.set_job(job);
    record.set_node(node);
    record.mutable_output()->set_data(std::string(output, 'x'));
    return record;
  }
  // Returns the jobs that a record of this node opens.
  std::vector<std::string> Open(const std::string& job, const std::string& node) {
    opened_.clear();
    EXPECT_TRUE(late_.Hold(Record(job, node)));
    executor_.AwaitIdle();
    return opened_;
  }

  FakeClock clock_;
  JobTable table_{
      {.max_running = 9, .retention = absl::Hours(1), .max_kept = 9, .max_unaudited = 9}};
  RecordInbox inbox_;
  absl::Status failure_;
  std::vector<std::string> opened_;
  bool ends_at_once_ = false;
  Executor executor_{{.name = "late-jobs", .threads = 1}};
  LateJobs late_{{clock_, table_, inbox_, clock_, executor_,
                  [this](const std::string& id, const std::string& folder) {
                    EXPECT_EQ(id, folder);
                    opened_.push_back(id);
                    if (ends_at_once_) late_.Remove(id);
                    return failure_;
                  }}};
};

TEST_F(LateJobsTest, OnlyAnAbandonedNodeOpensAJob) {
  EXPECT_FALSE(late_.Hold(Record("j1", "another")));
  EXPECT_FALSE(late_.Hold(Record("unknown", "a")));
  executor_.AwaitIdle();
  EXPECT_THAT(opened_, IsEmpty());
  EXPECT_THAT(Open("j1", "a"), ElementsAre("j1"));
}

TEST_F(LateJobsTest, EachNodeOpensOneJobAndAllOpenFour) {
  EXPECT_THAT(Open("j1", "a"), ElementsAre("j1"));
  EXPECT_THAT(Open("j2", "a"), IsEmpty());
  EXPECT_THAT(Open("j2", "b"), ElementsAre("j2"));
  EXPECT_THAT(Open("j3", "c"), ElementsAre("j3"));
  EXPECT_THAT(Open("j4", "d"), ElementsAre("j4"));
  EXPECT_THAT(Open("j5", "e"), IsEmpty());
  late_.Remove("j1");
  EXPECT_THAT(Open("j5", "e"), ElementsAre("j5"));
}

TEST_F(LateJobsTest, JobIsAwaitedUntilItHasBeenIdle) {
  EXPECT_FALSE(late_.Awaits("j1"));
  Open("j1", "a");
  clock_.Advance(absl::Seconds(9));
  EXPECT_TRUE(late_.Awaits("j1"));
  late_.NoteRecord("j1");
  clock_.Advance(absl::Seconds(9));
  EXPECT_TRUE(late_.Awaits("j1"));
  clock_.Advance(absl::Seconds(2));
  EXPECT_FALSE(late_.Awaits("j1"));
}

TEST_F(LateJobsTest, JobThatGetsRecordsAllTheTimeIsAwaitedTenMinutes) {
  Open("j1", "a");
  int seconds = 0;
  for (; late_.Awaits("j1") && seconds < 10'000; ++seconds) {
    clock_.Advance(absl::Seconds(1));
    late_.NoteRecord("j1");
  }
  EXPECT_EQ(seconds, 600);
}

// The log of a large job takes long to read.
TEST_F(LateJobsTest, RecordsAreHeldUntilTheJobIsOpenUpToALimit) {
  std::promise<void> go;
  ASSERT_TRUE(executor_.Post([&] { go.get_future().wait(); }));
  constexpr size_t kOutput = size_t{32} << 10;
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(late_.Hold(Record("j1", "a", kOutput)));
  EXPECT_TRUE(late_.Awaits("j1"));
  EXPECT_THAT(inbox_.Dequeue().batches, IsEmpty());
  clock_.Advance(absl::Minutes(10));
  EXPECT_TRUE(late_.Awaits("j1"));
  go.set_value();
  executor_.AwaitIdle();
  const RecordInbox::Work work = inbox_.Dequeue();
  ASSERT_EQ(work.batches.size(), 1U);
  const v1::JobRecords& held = work.batches[0].records;
  EXPECT_GT(held.records_size(), 100);
  EXPECT_LE(held.ByteSizeLong(), (size_t{4} << 20) + 1'000);
}

TEST_F(LateJobsTest, FailureIsTriedAgainAndDamageIsNot) {
  failure_ = absl::UnavailableError("the disk fails");
  EXPECT_THAT(Open("j1", "a"), ElementsAre("j1"));
  EXPECT_FALSE(late_.Awaits("j1"));
  failure_ = absl::DataLossError("damaged");
  EXPECT_THAT(Open("j1", "a"), ElementsAre("j1"));
  EXPECT_FALSE(late_.Hold(Record("j1", "a"))) << "it is acked";
  EXPECT_THAT(inbox_.Dequeue().batches, IsEmpty());
}

// After a restart the names of a job may include nodes whose outcome it has.
TEST_F(LateJobsTest, JobThatLacksNoOutcomeMayEndBeforeItCountsAsOpen) {
  ends_at_once_ = true;
  EXPECT_THAT(Open("j1", "a"), ElementsAre("j1"));
  EXPECT_FALSE(late_.Awaits("j1"));
  EXPECT_THAT(Open("j2", "a"), ElementsAre("j2"));
}

TEST_F(LateJobsTest, JobIsNotOpenedTooOften) {
  int openings = 0;
  while (openings < 1'000 && !Open("j1", "a").empty()) {
    ++openings;
    late_.Remove("j1");
  }
  EXPECT_EQ(openings, 100);
  EXPECT_THAT(Open("j2", "a"), ElementsAre("j2"));
  late_.Remove("j2");
  clock_.Advance(absl::Minutes(1));
  EXPECT_THAT(Open("j1", "a"), ElementsAre("j1"));
}

}  // namespace
}  // namespace muster
