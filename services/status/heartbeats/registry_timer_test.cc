#include "services/status/heartbeats/registry_timer.h"

#include "gtest/gtest.h"
#include "services/common/base/executor.h"
#include "services/status/heartbeats/testing/registry_fixture.h"

namespace muster {
namespace {

constexpr absl::Duration kTick = absl::Seconds(1);

class RegistryTimerTest : public testing::RegistryFixture {
 protected:
  void Advance(absl::Duration by) {
    for (absl::Duration passed; passed < by; passed += kTick) {
      clock_.Advance(kTick);
      executor_.AwaitIdle();
    }
  }

  Executor executor_{{.name = "background", .threads = 1}};
};

// A minute later the same senders would fill the journal again.
TEST_F(RegistryTimerTest, SendersThatTheJournalDoesNotTakeAreStoredAtTheNextTick) {
  for (int node = 1; node <= 3; ++node) Open(node);
  journal_.stored.clear();
  journal_.capacity = 2;
  const RegistryTimer timer(*registry_, kTick, clock_, clock_, executor_);
  Advance(absl::Minutes(1) - kTick);
  EXPECT_TRUE(journal_.stored.empty());
  Advance(kTick);
  EXPECT_EQ(journal_.stored.size(), 2u);
  Advance(kTick);
  EXPECT_EQ(journal_.stored.size(), 3u);
}

TEST_F(RegistryTimerTest, ChangedSendersAreStoredAtTheEnd) {
  {
    const RegistryTimer timer(*registry_, kTick, clock_, clock_, executor_);
    Open(1);
    journal_.stored.clear();
  }
  EXPECT_EQ(journal_.stored.size(), 1u);
}

}  // namespace
}  // namespace muster
