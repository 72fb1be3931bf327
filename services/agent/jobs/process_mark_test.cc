#include "services/agent/jobs/process_mark.h"

#include <signal.h>

#include <optional>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/subprocess.h"

namespace muster {
namespace {

constexpr char kVariable[] = "MUSTER_JOB=0123456789abcdef0123456789abcdef";

TEST(ProcessMarkTest, TextIsReadBack) {
  const ProcessMark mark{{12, 345, "boot"}};
  const ProcessMark read = ProcessMark::FromText(mark.ToText()).value();
  EXPECT_EQ(read.pid, 12);
  EXPECT_EQ(read.start_ticks, 345);
  EXPECT_EQ(read.boot_id, "boot");
  for (const char* text : {"", "12", "12 x boot", "1 345 boot", "12 345 boot more"}) {
    EXPECT_EQ(ReasonOf(ProcessMark::FromText(text).status()), "JOB_DAMAGED") << text;
  }
}

TEST(ProcessMarkTest, OtherProcessWithTheIdOfAnOldOneIsNotKilled) {
  auto stranger = Subprocess::Start({.argv = {"/bin/sleep", "1000"}});
  ASSERT_TRUE(stranger.ok());
  ProcessMark mark = ProcessMark::Of((*stranger)->pid()).value();
  --mark.start_ticks;
  EXPECT_EQ(EndGroup(mark, kVariable), 0);
  EXPECT_EQ((*stranger)->Wait(absl::ZeroDuration()), std::nullopt);
  ++mark.start_ticks;
  EXPECT_EQ(EndGroup(mark, kVariable), 1);
  EXPECT_EQ((*stranger)->Wait(absl::Minutes(1))->signal, SIGKILL);
}

}  // namespace
}  // namespace muster
