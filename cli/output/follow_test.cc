#include "cli/output/follow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "cli/exit_code.h"
#include "services/common/errors/rpc.h"

namespace muster::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

RunView CompleteRun() {
  v1::RunStatus status;
  status.set_run("3f2a0123456789ab");
  status.set_state(v1::RUN_STATE_COMPLETE);
  status.mutable_counts()->set_planned(1);
  status.mutable_counts()->set_genuine(1);
  status.mutable_end_time()->set_seconds(1'700'000'000);
  return ViewOf(status);
}

// The output of Follow, with a source that returns `answers` in turn.
struct Followed {
  explicit Followed(std::vector<absl::StatusOr<RunView>> answers) {
    size_t next = 0;
    end = Follow([&] { return answers[next++]; }, {.stream = stream,
                                                   .messages = messages,
                                                   .is_terminal = false,
                                                   .line = {},
                                                   .interval = absl::Milliseconds(1)});
  }
  std::ostringstream stream;
  std::ostringstream messages;
  absl::StatusOr<RunView> end;
};

TEST(FollowTest, UnreachableServiceIsReportedOnceUntilItAnswers) {
  const absl::Status fault =
      FromService(errors::Unreachable("connection refused"), "the status service x:1");
  const Followed followed({fault, fault, fault, CompleteRun()});
  EXPECT_TRUE(followed.end.ok()) << followed.end.status();
  EXPECT_THAT(followed.messages.str(),
              StartsWith("connection refused (the status service x:1); trying again until "));
  EXPECT_THAT(followed.messages.str(), EndsWith(" UTC\nThe service answers again.\n"));
  EXPECT_EQ(std::ranges::count(followed.messages.str(), '\n'), 2);
}

TEST(FollowTest, UnreachableServiceIsGivenUpAfterTheLimit) {
  std::ostringstream stream;
  std::ostringstream messages;
  int requests = 0;
  const auto fetch = [&]() -> absl::StatusOr<RunView> {
    ++requests;
    if (requests > 1'000) return CompleteRun();  // it was not given up
    return FromService(errors::Unreachable("connection refused"), "the status service x:1");
  };
  FollowOutput output = {.stream = stream,
                         .messages = messages,
                         .is_terminal = false,
                         .line = {},
                         .interval = absl::Milliseconds(1)};
  EXPECT_EQ(output.unreachable_limit, absl::Minutes(5));
  output.unreachable_limit = absl::Milliseconds(10);
  EXPECT_TRUE(absl::IsUnavailable(Follow(fetch, output).status()));
  // An answer that came too late is not awaited again.
  output.unreachable_limit = absl::ZeroDuration();
  requests = 0;
  EXPECT_TRUE(absl::IsUnavailable(Follow(fetch, output).status()));
  EXPECT_EQ(requests, 1);
}

TEST(FollowTest, UnknownRunIsReportedBeforeItIsFound) {
  const Followed followed(
      {FromService(absl::NotFoundError("run not found"), "run 3f"), CompleteRun()});
  EXPECT_THAT(followed.messages.str(), HasSubstr("run not found (run 3f); trying again until "));
}

TEST(FollowTest, ErrorThatIsNotRetriedIsReturnedWithoutMessage) {
  const Followed followed({absl::PermissionDeniedError("no")});
  EXPECT_TRUE(absl::IsPermissionDenied(followed.end.status()));
  EXPECT_EQ(followed.messages.str(), "");
}

TEST(FollowTest, FinishedRunIsPrintedWithTheTimeOfItsEnd) {
  const Followed followed({CompleteRun()});
  EXPECT_EQ(followed.stream.str(), "2023-11-14 22:13 UTC complete: 1 of 1 result\n");
}

TEST(FollowTest, FinishedRunWithoutEndTimeIsPrintedWithoutTime) {
  RunView view = CompleteRun();
  view.status.clear_end_time();
  const Followed followed({view});
  EXPECT_EQ(followed.stream.str(), "complete: 1 of 1 result\n");
}

}  // namespace
}  // namespace muster::cli
