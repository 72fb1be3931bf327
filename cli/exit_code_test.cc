#include "cli/exit_code.h"

#include <gtest/gtest.h>

#include "services/common/base/error.h"
#include "services/common/errors/runs.h"

namespace muster::cli {
namespace {

const absl::Status kMissing =
    MakeError(absl::StatusCode::kNotFound, "RUN_NOT_FOUND", "no run 3f2a", "List the runs.");

TEST(ExitCodeTest, CodeDependsOnTheOriginOfTheError) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(kMissing), 1);
  EXPECT_EQ(ExitCodeOf(UsageError("no", "yes")), 2);
  EXPECT_EQ(ExitCodeOf(FromService(kMissing, "run 3f2a")), 69);
  EXPECT_EQ(ExitCodeOf(FromService(absl::UnavailableError(""), "")), 78);
}

TEST(ExitCodeTest, MarksKeepReasonNextStepAndFirstSubject) {
  const absl::Status status = FromService(kMissing, "run 3f2a at host:1");
  EXPECT_EQ(ReasonOf(status), "RUN_NOT_FOUND");
  EXPECT_EQ(NextStepOf(status), "List the runs.");
  EXPECT_EQ(SubjectOf(status), "run 3f2a at host:1");
  EXPECT_EQ(SubjectOf(WithSubject(status, "something else")), "run 3f2a at host:1");
  EXPECT_TRUE(FromService(absl::OkStatus(), "run").ok());
}

TEST(FromServiceTest, RefusalWithoutDetailsHasReasonAndNextStep) {
  const absl::Status status = FromService(
      absl::PermissionDeniedError("REVOKED: the identity at 10.0.0.5:1 is revoked. Ask someone."),
      "the aggregator");
  EXPECT_EQ(ReasonOf(status), "REVOKED");
  EXPECT_EQ(status.message(), "the identity at 10.0.0.5:1 is revoked");
  EXPECT_EQ(NextStepOf(status), "Ask someone.");
  EXPECT_EQ(ExitCodeOf(status), 71);
}

TEST(FromServiceTest, MissingAnswerHasReasonAndNextStep) {
  const absl::Status status =
      FromService(absl::DeadlineExceededError("Deadline Exceeded"), "the aggregator");
  EXPECT_EQ(ReasonOf(status), "NO_ANSWER");
  EXPECT_NE(NextStepOf(status), "");
  EXPECT_EQ(SubjectOf(status), "the aggregator");
  EXPECT_EQ(ExitCodeOf(status), 68);
}

TEST(FromServiceTest, OtherMessageWithoutDetailsIsUnchanged) {
  for (const char* message : {"Received http2 header. Try again.", "IO: no reason. None.",
                              "REVOKED: without a next step", "REVOKED"}) {
    const absl::Status status = FromService(absl::PermissionDeniedError(message), "x");
    EXPECT_EQ(ReasonOf(status), "") << message;
    EXPECT_EQ(status.message(), message);
  }
}

TEST(UsageErrorTest, MarkedErrorHasTheExitCodeAndKeepsItsReason) {
  const absl::Status status =
      AsUsageError(MakeError(absl::StatusCode::kInvalidArgument, "X", "bad", "do"), "--ttl");
  EXPECT_EQ(ExitCodeOf(status), kExitUsage);
  EXPECT_EQ(ReasonOf(status), "X");
  EXPECT_EQ(status.message(), "--ttl: bad");
}

TEST(ExitCodeTest, RefusedTimeoutNamesItsOption) {
  const absl::Status refused = WithTimeoutOption(FromService(
      errors::InvalidTimeout("lost_after", absl::Seconds(5), "10 s to 1 day"), "the aggregator"));
  EXPECT_EQ(refused.message(), "--lost-after 5s is outside 10 s to 1 day");
  EXPECT_EQ(ExitCodeOf(refused), kExitUsage);
  EXPECT_EQ(ExitCodeOf(WithTimeoutOption(absl::InternalError("x"))), kExitError);
}

}  // namespace
}  // namespace muster::cli
