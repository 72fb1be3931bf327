#include "services/agent/jobs/container_mark.h"

#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

TEST(ContainerMarkTest, TextIsReadAsItWasWritten) {
  ContainerMark mark;
  mark.boot = "b-1";
  mark.start = absl::FromUnixNanos(1'700'000'000'123'456'789);
  mark.since_boot = absl::Nanoseconds(987'654'321);
  mark.plan.time_limit = absl::Minutes(90);
  mark.plan.max_output = 12'345;
  mark.plan.keep_output = false;
  mark.plan.container.memory = int64_t{64} << 20;
  mark.plan.image = "registry.example/a@sha256:" + std::string(64, 'a');
  const auto read = ContainerMark::FromText(mark.ToText());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->boot, mark.boot);
  EXPECT_EQ(read->start, mark.start);
  EXPECT_EQ(read->since_boot, mark.since_boot);
  EXPECT_EQ(read->plan.time_limit, mark.plan.time_limit);
  EXPECT_EQ(read->plan.max_output, mark.plan.max_output);
  EXPECT_EQ(read->plan.keep_output, mark.plan.keep_output);
  EXPECT_EQ(read->plan.container.memory, mark.plan.container.memory);
  EXPECT_EQ(read->plan.image, mark.plan.image);
}

TEST(ContainerMarkTest, OtherTextIsDamaged) {
  for (const char* text : {"", "b", "b 1 9 2 3 1 4", "b 1 9 2 x 1 4 i", "b 1 x 2 3 1 4 i",
                           "b 1 9 2 3 1 4 ", "b 1 9 2 3 1 4 i j"}) {
    EXPECT_EQ(ReasonOf(ContainerMark::FromText(text).status()), "JOB_DAMAGED") << text;
  }
}

}  // namespace
}  // namespace muster
