#include "services/relay/jobs/job_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "services/common/base/error.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'750'000'000);

class JobTableTest : public ::testing::Test {
 protected:
  // Inserts a finished job.
  void Insert(const std::string& id, absl::Time submitted) {
    JobTable::Entry entry;
    entry.folder = "/jobs/" + id;
    entry.job.set_job(id);
    ToProto(submitted, entry.job.mutable_submit_time());
    table_.Insert(id, std::move(entry));
  }
  std::vector<std::string> List(const std::string& before, size_t limit) const {
    std::vector<std::string> ids;
    for (const JobTable::Entry& entry : table_.List(before, limit)) ids.push_back(entry.job.job());
    return ids;
  }

  JobTable table_{{.max_running = 2, .retention = absl::Hours(1), .max_kept = 3}};
};

TEST_F(JobTableTest, ReservedJobsCountAgainstTheLimitUntilTheyAreAbandoned) {
  EXPECT_TRUE(table_.Reserve("a", "u1").ok());
  EXPECT_EQ(ReasonOf(table_.Reserve("a", "u1")), "JOB_IN_CREATION");
  EXPECT_TRUE(table_.Reserve("b", "u2").ok());
  EXPECT_EQ(ReasonOf(table_.Reserve("c", "u3")), "TOO_MANY_JOBS");
  table_.Abandon("a");
  EXPECT_TRUE(table_.Reserve("c", "u3").ok());
}

TEST(JobTableLimitTest, OneSubmitterRunsHalfOfTheJobs) {
  JobTable table({.max_running = 4, .retention = absl::Hours(1), .max_kept = 9});
  EXPECT_TRUE(table.Reserve("a", "u1").ok());
  EXPECT_TRUE(table.Reserve("b", "u1").ok());
  EXPECT_EQ(ReasonOf(table.Reserve("c", "u1")), "TOO_MANY_JOBS");
  EXPECT_TRUE(table.Reserve("d", "u2").ok());
  table.Abandon("a");
  EXPECT_TRUE(table.Reserve("c", "u1").ok());
  JobTable::Entry finished;
  finished.job.set_submitted_by("u1");
  table.Insert("b", finished);
  EXPECT_TRUE(table.Reserve("e", "u1").ok());
}

TEST_F(JobTableTest, ListReturnsTheNewestFirstInPages) {
  for (const char* id : {"a", "c", "b"}) Insert(id, kNow);
  Insert("old", kNow - absl::Minutes(1));
  EXPECT_EQ(List("", 3), (std::vector<std::string>{"c", "b", "a"}));
  EXPECT_EQ(List("a", 3), std::vector<std::string>{"old"});
  EXPECT_EQ(List("unknown", 1), std::vector<std::string>{"c"});
}

TEST_F(JobTableTest, FinishedJobsPastTheLimitsAreRemovedUnlessTheyAreKept) {
  Insert("old", kNow - absl::Hours(2));
  Insert("watched", kNow - absl::Hours(3));
  for (const char* id : {"a", "b", "c"}) Insert(id, kNow);
  const auto is_kept = [](const std::string& id) { return id == "watched"; };
  EXPECT_EQ(table_.RemoveOld(kNow, is_kept), (std::vector<std::string>{"/jobs/old", "/jobs/a"}));
  EXPECT_FALSE(table_.Find("old").ok());
  EXPECT_TRUE(table_.Find("watched").ok());
  EXPECT_TRUE(table_.RemoveOld(kNow, is_kept).empty());
}

}  // namespace
}  // namespace muster
