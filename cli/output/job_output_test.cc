#include "cli/output/job_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class JobOutputTest : public ::testing::Test {
 protected:
  void Receive(const std::string& node, v1::JobOutcome outcome = v1::JOB_OUTCOME_UNSPECIFIED) {
    v1::WatchJobResponse response;
    v1::JobRecord& record = *response.add_records();
    record.set_node(node);
    if (outcome == v1::JOB_OUTCOME_UNSPECIFIED) {
      record.mutable_started();
    } else {
      record.mutable_final()->set_outcome(outcome);
    }
    output_.HandleResponse(response);
  }

  std::ostringstream out_;
  std::ostringstream err_;
  Console console_{.out = out_, .err = err_};
  JobOutput output_{console_, /*json=*/false};
};

TEST_F(JobOutputTest, NodeHasAnsweredWithItsFirstRecord) {
  EXPECT_THAT(output_.WithoutAnswer({"n1", "n2", "n3"}), ElementsAre("n1", "n2", "n3"));
  Receive("n1");
  Receive("n3", v1::JOB_OUTCOME_UNKNOWN);
  EXPECT_THAT(output_.WithoutAnswer({"n1", "n2", "n3"}), ElementsAre("n2"));
  Receive("n2");
  EXPECT_THAT(output_.WithoutAnswer({"n1", "n2", "n3"}), IsEmpty());
}

TEST_F(JobOutputTest, RecordOfABranchIsNoAnswer) {
  v1::WatchJobResponse response;
  response.add_records()->mutable_branch()->set_detail("relay r1 is unreachable");
  output_.HandleResponse(response);
  EXPECT_THAT(output_.WithoutAnswer({"n1"}), ElementsAre("n1"));
}

TEST_F(JobOutputTest, NoticeIsPrintedOnStderr) {
  output_.PrintNotice("not responding: n1");
  EXPECT_EQ(err_.str(), "not responding: n1\n");
  EXPECT_EQ(out_.str(), "");
}

}  // namespace
}  // namespace muster::cli
