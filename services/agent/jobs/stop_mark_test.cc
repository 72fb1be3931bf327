#include "services/agent/jobs/stop_mark.h"

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

TEST(StopMarkTest, TextIsReadAsItWasWritten) {
  for (const JobStop why : {JobStop::kCancelled, JobStop::kTimedOut, JobStop::kStateTooLarge}) {
    const StopMark mark = {why, absl::FromUnixNanos(1'700'000'000'123'456'789), "64 MiB of files"};
    const auto read = StopMark::FromText(mark.ToText());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->why, why);
    EXPECT_EQ(read->time, mark.time);
    EXPECT_EQ(read->detail, mark.detail);
  }
}

TEST(StopMarkTest, OtherTextIsDamaged) {
  for (const char* text : {"", "cancelled", "cancelled 1", "cancelled x ", "other 1 ", " 1 "}) {
    EXPECT_EQ(ReasonOf(StopMark::FromText(text).status()), "JOB_DAMAGED") << text;
  }
}

}  // namespace
}  // namespace muster
