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
  void Insert(const std::string& id, absl::Time submitted, bool audited = true) {
    JobTable::Entry entry;
    entry.audit.has_submission = audited;
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

  // Returns the ids of those that are removed. Those that lose their output are in
  // `without_output_`.
  std::vector<std::string> RemoveOld() {
    std::vector<std::string> ids;
    without_output_.clear();
    const auto is_watched = [](const std::string& id) { return id == "watched"; };
    const JobTable::Old old = table_.RemoveOld(kNow, is_watched);
    for (const JobTable::Entry& entry : old.removed) ids.push_back(entry.job.job());
    for (const JobTable::Entry& entry : old.without_output) {
      without_output_.push_back(entry.job.job());
    }
    return ids;
  }

  JobTable table_{
      {.max_running = 2, .retention = absl::Hours(1), .max_kept = 3, .max_unaudited = 4}};
  std::vector<std::string> without_output_;
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
  EXPECT_EQ(RemoveOld(), (std::vector<std::string>{"old", "a"}));
  EXPECT_FALSE(table_.Find("old").ok());
  EXPECT_TRUE(table_.Find("watched").ok());
  EXPECT_TRUE(RemoveOld().empty());
}

TEST_F(JobTableTest, JobsThatTheAuditLogLacksAreKeptUpToAHigherLimit) {
  for (const char* id : {"a", "b", "c", "d"}) Insert(id, kNow - absl::Hours(2), /*audited=*/false);
  table_.SetCancelled("b", "u1", kNow);
  EXPECT_TRUE(RemoveOld().empty());
  Insert("e", kNow, /*audited=*/false);
  EXPECT_EQ(RemoveOld(), std::vector<std::string>{"a"});
  EXPECT_EQ(table_.Unaudited(2).at(0).job.job(), "b");
  table_.MarkAudited("b", /*cancellation=*/false);
  EXPECT_TRUE(RemoveOld().empty()) << "the record of its cancellation is missing";
  table_.MarkAudited("b", /*cancellation=*/true);
  EXPECT_EQ(RemoveOld(), std::vector<std::string>{"b"});
  EXPECT_FALSE(table_.MarkAudited("b", /*cancellation=*/true));
}

TEST_F(JobTableTest, OldJobThatTheAuditLogLacksLosesItsOutputOnce) {
  Insert("a", kNow - absl::Hours(2), /*audited=*/false);
  Insert("watched", kNow - absl::Hours(2), /*audited=*/false);
  EXPECT_TRUE(RemoveOld().empty());
  EXPECT_EQ(without_output_, std::vector<std::string>{"a"});
  EXPECT_EQ(ReasonOf(table_.Find("a").status()), "JOB_NOT_FOUND");
  EXPECT_TRUE(table_.FindStored("a").ok());
  EXPECT_EQ(ReasonOf(table_.Reserve("a", "u1")), "JOB_EXISTS");
  EXPECT_EQ(List("", 9), std::vector<std::string>{"watched"});
  EXPECT_EQ(table_.Unaudited(9).size(), 2u);
  EXPECT_TRUE(RemoveOld().empty());
  EXPECT_TRUE(without_output_.empty());
}

TEST_F(JobTableTest, JobsThatTheAuditLogLacksDoNotDisplaceNewerJobs) {
  for (const char* id : {"a", "b", "c"}) Insert(id, kNow - absl::Minutes(1), /*audited=*/false);
  Insert("new", kNow);
  EXPECT_TRUE(RemoveOld().empty());
  EXPECT_EQ(without_output_, std::vector<std::string>{"a"});
  EXPECT_EQ(List("", 9), (std::vector<std::string>{"new", "c", "b"}));
}

}  // namespace
}  // namespace muster
