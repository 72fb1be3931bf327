#include "services/common/base/error.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(ErrorTest, CarriesReasonAndNextStep) {
  const absl::Status status =
      MakeError(absl::StatusCode::kNotFound, "RUN_NOT_FOUND", "no run \"7f\"", "List runs.");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(status), "RUN_NOT_FOUND");
  EXPECT_EQ(NextStepOf(status), "List runs.");
  EXPECT_EQ(RetryAfterOf(status), std::nullopt);
}

TEST(ErrorTest, AnnotateKeepsEverythingButTheMessage) {
  const absl::Status status =
      WithRetryAfter(MakeError(absl::StatusCode::kUnavailable, "DRAINING", "stopping", "Wait."),
                     absl::Milliseconds(1500));
  const absl::Status annotated = Annotate(status, "open upload");
  EXPECT_EQ(annotated.message(), "open upload: stopping");
  EXPECT_EQ(ReasonOf(annotated), "DRAINING");
  EXPECT_EQ(NextStepOf(annotated), "Wait.");
  EXPECT_EQ(RetryAfterOf(annotated), absl::Milliseconds(1500));
  EXPECT_TRUE(Annotate(absl::OkStatus(), "nothing").ok());
}

}  // namespace
}  // namespace muster
