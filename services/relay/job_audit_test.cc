#include "services/relay/job_audit.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::RecordJobRequest Submission(std::vector<std::string> argv) {
  v1::RecordJobRequest record;
  record.set_job("j1");
  record.set_actor("spiffe://fleet.test/user/o");
  record.set_action("exec");
  for (std::string& arg : argv) *record.add_argv() = std::move(arg);
  record.set_targets(3);
  return record;
}

class JobAuditTest : public ::testing::Test {
 protected:
  // Returns what the records log, with this answer to each.
  static std::string LogOf(const v1::RecordJobRequest& record, const absl::Status& answer) {
    JobAudit audit([&](const v1::RecordJobRequest&, const JobAudit::Done& done) { done(answer); });
    ::testing::internal::CaptureStderr();
    audit.Record(record);
    return ::testing::internal::GetCapturedStderr();
  }
};

TEST_F(JobAuditTest, LostRecordIsLoggedWithItsContent) {
  const std::string log =
      LogOf(Submission({"/bin/sh", "-c", "one\ntwo"}), absl::UnavailableError("gone"));
  EXPECT_THAT(log, HasSubstr("job=j1"));
  EXPECT_THAT(log, HasSubstr("user/o"));
  EXPECT_THAT(log, HasSubstr("exec"));
  EXPECT_THAT(log, HasSubstr("/bin/sh -c one\\ntwo"));
  EXPECT_THAT(log, HasSubstr("targets=3"));
  EXPECT_THAT(log, HasSubstr("gone"));
}

TEST_F(JobAuditTest, LongCommandIsCutInTheLog) {
  const std::string log = LogOf(Submission({std::string(60'000, 'x')}), absl::UnavailableError(""));
  EXPECT_THAT(log, HasSubstr(std::string(1'024, 'x')));
  EXPECT_THAT(log, Not(HasSubstr(std::string(1'025, 'x'))));
}

TEST_F(JobAuditTest, StoredRecordIsNotLogged) {
  EXPECT_EQ(LogOf(Submission({"/bin/true"}), absl::OkStatus()), "");
}

TEST_F(JobAuditTest, RecordWithoutAnAggregatorIsLost) {
  JobAudit audit(SendToAggregator([] { return nullptr; }));
  ::testing::internal::CaptureStderr();
  audit.Record(Submission({"/bin/true"}));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("no connection"));
}

TEST_F(JobAuditTest, RecordsThatWaitForAnAnswerAreBounded) {
  std::vector<JobAudit::Done> waiting;
  JobAudit audit([&](const v1::RecordJobRequest&, JobAudit::Done done) {
    waiting.push_back(std::move(done));
  });
  const auto large = Submission({std::string(60'000, 'x')});
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 1'000; ++i) audit.Record(large);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("too many records"));
  const size_t sent = waiting.size();
  EXPECT_GT(sent, 50u);
  EXPECT_LE(sent * 60'000, static_cast<size_t>(JobAudit::kMaxInFlight));
  waiting.front()(absl::OkStatus());
  audit.Record(large);
  EXPECT_EQ(waiting.size(), sent + 1);
}

}  // namespace
}  // namespace muster
