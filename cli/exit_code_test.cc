#include "cli/exit_code.h"

#include <gtest/gtest.h>

#include "services/common/base/error.h"

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

}  // namespace
}  // namespace muster::cli
