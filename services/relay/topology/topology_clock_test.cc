// Times that a child relay with another clock reports.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "services/common/base/fake_clock.h"
#include "services/relay/testing/recorded_link.h"
#include "services/relay/topology/topology.h"

namespace muster {
namespace {

class TopologyClockTest : public ::testing::Test {
 protected:
  TopologyClockTest() {
    topology_.Listen([this](const auto& names) { reachable_ += names.size(); }, nullptr);
    EXPECT_TRUE(topology_
                    .Attach(AttachedEntry("r2", "root", clock_.Now(), /*is_relay=*/true),
                            std::make_shared<RecordedLink>())
                    .ok());
    reachable_ = 0;
  }

  // Reports n1, attached to r2 since that time by its clock.
  void Report(absl::Time since) {
    TopologyEntry entry = AttachedEntry("n1", "r2", clock_.Now());
    entry.since = since;
    ASSERT_TRUE(topology_.ApplyUpdate("r2", {entry}, {}, /*complete=*/true).ok());
  }
  absl::Time ChangeTime() const { return topology_.Find("n1")->ChangeTime(); }

  FakeClock clock_;
  size_t reachable_ = 0;
  Topology topology_{{.name = "root", .is_root = true, .max_entries = 6}, clock_};
};

TEST_F(TopologyClockTest, AttachmentInTheFutureIsOfTheTimeAtWhichItBecameKnown) {
  const absl::Time known = clock_.Now();
  const absl::Time ahead = known + absl::Minutes(2);
  Report(ahead);
  EXPECT_EQ(ChangeTime(), known);
  EXPECT_EQ(reachable_, 1u);
  clock_.Advance(absl::Minutes(30));
  Report(ahead);
  EXPECT_EQ(ChangeTime(), known) << "its statement was renewed";
  EXPECT_EQ(reachable_, 1u);
  Report(clock_.Now() + absl::Minutes(2));
  EXPECT_EQ(ChangeTime(), clock_.Now()) << "it attached again";
  EXPECT_EQ(reachable_, 2u);
}

TEST_F(TopologyClockTest, AttachmentInThePastHasTheTimeOfItsParent) {
  const absl::Time since = clock_.Now() - absl::Hours(1);
  Report(since);
  EXPECT_EQ(ChangeTime(), since);
}

}  // namespace
}  // namespace muster
