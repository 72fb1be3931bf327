#include "cli/output/job_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/output/job_view.h"

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
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

  void ReceiveFailure(const std::string& node, v1::JobOutcome outcome, const std::string& reason) {
    v1::WatchJobResponse response;
    v1::JobRecord& record = *response.add_records();
    record.set_node(node);
    record.mutable_final()->set_outcome(outcome);
    record.mutable_final()->set_reason(reason);
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

TEST_F(JobOutputTest, RemarkOfACommandThatSucceededIsPrinted) {
  v1::WatchJobResponse response;
  v1::JobRecord& record = *response.add_records();
  record.set_node("n1");
  record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
  record.mutable_final()->set_detail("the log lost its beginning");
  output_.HandleResponse(response);
  EXPECT_EQ(err_.str(), "n1: the log lost its beginning\n");
}

// A node must not forge lines of other nodes, or change the terminal.
TEST_F(JobOutputTest, TextOfANodeOrARelayHasNoControlCharactersAndOneLine) {
  const std::string text = "\x1b]52;c;YQ==\x07\r\x1b[K\nn2 succeeded";
  const std::string shown = "?]52;c;YQ==???[K n2 succeeded";
  const auto receive = [&](v1::JobOutcome outcome, int exit_code) {
    v1::WatchJobResponse response;
    v1::JobRecord& record = *response.add_records();
    record.set_node(absl::StrCat("n", outcome, exit_code));
    record.mutable_final()->set_outcome(outcome);
    record.mutable_final()->set_exit_code(exit_code);
    record.mutable_final()->set_detail(text);
    err_.str("");
    output_.HandleResponse(response);
    EXPECT_THAT(err_.str(), HasSubstr(shown + "\n"));
  };
  receive(v1::JOB_OUTCOME_EXITED, 0);
  receive(v1::JOB_OUTCOME_EXITED, 1);
  receive(v1::JOB_OUTCOME_LOST, 0);
  v1::WatchJobResponse response;
  response.add_records()->mutable_branch()->set_detail(text);
  err_.str("");
  output_.HandleResponse(response);
  EXPECT_EQ(err_.str(), shown + "\n");
}

TEST_F(JobOutputTest, CommandWithoutArgumentsIsItsActionAndClasses) {
  v1::Job job;
  job.set_action("rudder");
  EXPECT_EQ(QuotedCommand(job), "rudder");
  job.add_classes("info");
  job.add_classes("debug");
  EXPECT_EQ(QuotedCommand(job), "rudder -D info,debug");
  job.clear_classes();
  job.add_argv("/bin/echo");
  job.add_argv("a b");
  EXPECT_EQ(QuotedCommand(job), "/bin/echo 'a b'");
}

TEST_F(JobOutputTest, DeploymentIsNamedByItsTemplateOrItsImage) {
  v1::Job job;
  job.set_action("deployment");
  job.set_image("registry.example/types/greet@sha256:0123");
  EXPECT_EQ(QuotedCommand(job, "hi@1.4.0"), "deployment of hi@1.4.0");
  EXPECT_EQ(QuotedCommand(job), "deployment of the image registry.example/types/greet");
}

TEST_F(JobOutputTest, FailureIsNotCalledSoTwice) {
  ReceiveFailure("n1", v1::JOB_OUTCOME_FAILED, "OUTPUTS_INVALID");
  EXPECT_EQ(err_.str(), "n1 failed: OUTPUTS_INVALID\n");
}

TEST_F(JobOutputTest, OutputAloneHasNoFailuresAndNoSummary) {
  JobOutput output(console_, /*json=*/false, JobReport::kOutput);
  v1::WatchJobResponse response;
  for (int i = 0; i < 2; ++i) response.add_records()->set_node("n1");
  response.mutable_records(0)->mutable_output()->set_data("line\n");
  response.mutable_records(1)->mutable_final()->set_outcome(v1::JOB_OUTCOME_LOST);
  output.HandleResponse(response);
  output.Finish(v1::Job());
  EXPECT_EQ(out_.str(), "n1: line\n");
  EXPECT_EQ(err_.str(), "");
  EXPECT_TRUE(output.has_failures());
}

TEST_F(JobOutputTest, RefusedContainerHasTheNextStepOfContainers) {
  v1::WatchJobResponse response;
  response.mutable_job()->set_image("a@sha256:0");
  response.add_records()->mutable_final()->set_outcome(v1::JOB_OUTCOME_REFUSED);
  response.mutable_records(0)->mutable_final()->set_reason("POLICY_REFUSED");
  output_.HandleResponse(response);
  output_.Finish(v1::Job());
  EXPECT_THAT(err_.str(), HasSubstr("\n next: Correct the policy file on the node"));
}

TEST_F(JobOutputTest, RecordOfABranchIsNoAnswer) {
  v1::WatchJobResponse response;
  response.add_records()->mutable_branch()->set_detail("relay r1 is unreachable");
  output_.HandleResponse(response);
  EXPECT_THAT(output_.WithoutAnswer({"n1"}), ElementsAre("n1"));
}

TEST_F(JobOutputTest, FailureIsPrintedWhenItHappensAndNotAgainAtTheEnd) {
  Receive("n1");
  Receive("n1", v1::JOB_OUTCOME_REFUSED);
  EXPECT_EQ(err_.str(), "n1 failed: refused\n");
  v1::Job job;
  job.set_job("j1");
  job.set_targets(1);
  EXPECT_EQ(output_.Finish(job), 9);
  EXPECT_EQ(err_.str().find("n1 failed"), err_.str().rfind("n1 failed"));
  EXPECT_TRUE(output_.has_failures());
}

TEST_F(JobOutputTest, RefusalByAPolicyHasANextStep) {
  ReceiveFailure("n1", v1::JOB_OUTCOME_REFUSED, "POLICY_REFUSED");
  output_.Finish(v1::Job());
  EXPECT_NE(err_.str().find("\n next: Add a rule that admits the command"), std::string::npos)
      << err_.str();
}

TEST_F(JobOutputTest, UnusablePolicyHasANextStep) {
  ReceiveFailure("n1", v1::JOB_OUTCOME_REFUSED, "POLICY_UNUSABLE");
  output_.Finish(v1::Job());
  EXPECT_NE(err_.str().find("\n next: Correct the file"), std::string::npos) << err_.str();
}

TEST_F(JobOutputTest, DeathOfAnAgentHasANextStepThatIsPrintedOnce) {
  ReceiveFailure("n1", v1::JOB_OUTCOME_LOST, "AGENT_DIED");
  ReceiveFailure("n2", v1::JOB_OUTCOME_LOST, "AGENT_DIED");
  output_.Finish(v1::Job());
  const size_t step = err_.str().find("\n next: Read the log of the agent");
  EXPECT_NE(step, std::string::npos) << err_.str();
  EXPECT_EQ(step, err_.str().rfind("\n next: ")) << err_.str();
}

TEST_F(JobOutputTest, LateSuccessReplacesTheFailure) {
  Receive("n1", v1::JOB_OUTCOME_TIMED_OUT);
  err_.str("");
  Receive("n1", v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(err_.str(), "n1 succeeded; its report came late\n");
  EXPECT_FALSE(output_.has_failures());
}

TEST_F(JobOutputTest, FailuresBeyondTheTwentiethAreCounted) {
  for (int i = 0; i < 22; ++i) Receive(absl::StrCat("n", i), v1::JOB_OUTCOME_UNKNOWN);
  EXPECT_EQ(err_.str().find("n20 failed"), std::string::npos);
  v1::Job job;
  job.set_job("j1");
  job.set_targets(22);
  output_.Finish(job);
  EXPECT_NE(err_.str().find("... and 2 more failed. List them: muster job show j1 --json\n"),
            std::string::npos);
}

TEST_F(JobOutputTest, TimeOfTodayIsPrintedWithoutItsDate) {
  v1::WatchJobResponse response;
  const std::string today = absl::FormatTime("%Y-%m-%d ", absl::Now(), absl::UTCTimeZone());
  response.add_records()->mutable_branch()->set_detail(
      absl::StrCat("n1 is lost; timed out at ", today, "06:44:30 UTC"));
  output_.HandleResponse(response);
  EXPECT_EQ(err_.str(), "n1 is lost; timed out at 06:44:30 UTC\n");
}

TEST_F(JobOutputTest, NoticeIsPrintedOnStderr) {
  output_.PrintNotice("attached, nothing reported yet: n1");
  EXPECT_EQ(err_.str(), "attached, nothing reported yet: n1\n");
  EXPECT_EQ(out_.str(), "");
}

}  // namespace
}  // namespace muster::cli
