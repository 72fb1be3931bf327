#include "services/relay/known_nodes.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "services/common/base/fake_clock.h"
#include "services/common/base/simulated_disk.h"
#include "services/relay/testing/recorded_link.h"

namespace muster {
namespace {

constexpr char kPath[] = "/known-nodes";
constexpr char kFleet[] = "fleet.test";

class KnownNodesTest : public ::testing::Test {
 protected:
  // Returns the entry of a node in a relay that starts now.
  std::optional<TopologyEntry> AfterARestart(const std::string& name) {
    Topology restarted({.name = "r1"}, clock_);
    KnownNodes known(disk_, kPath, clock_);
    EXPECT_TRUE(known.Load(kFleet, clock_.Now(), restarted).ok());
    return restarted.Find(name);
  }

  SimulatedDisk disk_;
  FakeClock clock_;
  Topology topology_{{.name = "r1"}, clock_};
  KnownNodes known_{disk_, kPath, clock_};
};

TEST_F(KnownNodesTest, AttachedNodeIsKnownAfterARestart) {
  const auto link = std::make_shared<RecordedLink>();
  ASSERT_TRUE(topology_.Attach(AttachedEntry("n1", "r1", clock_.Now()), link).ok());
  ASSERT_TRUE(known_.Store(topology_).ok());
  clock_.Advance(absl::Hours(24 * 30));
  const auto n1 = AfterARestart("n1");
  ASSERT_TRUE(n1.has_value());
  EXPECT_FALSE(n1->attached);
  EXPECT_EQ(n1->since, clock_.Now()) << "it was here just now";
}

TEST_F(KnownNodesTest, DetachTimeIsKept) {
  const auto link = std::make_shared<RecordedLink>();
  ASSERT_TRUE(topology_.Attach(AttachedEntry("n1", "r1", clock_.Now()), link).ok());
  clock_.Advance(absl::Minutes(1));
  topology_.Detach("n1", link.get());
  const absl::Time went = clock_.Now();
  ASSERT_TRUE(known_.Store(topology_).ok());
  clock_.Advance(absl::Hours(1));
  const auto n1 = AfterARestart("n1");
  ASSERT_TRUE(n1.has_value());
  EXPECT_EQ(n1->since, went);
}

TEST_F(KnownNodesTest, DamagedFileIsMovedAside) {
  ASSERT_TRUE(WriteFileDurably(disk_, kPath, "damaged").ok());
  EXPECT_FALSE(AfterARestart("n1").has_value());
  EXPECT_EQ(*ReadSmallFile(disk_, std::string(kPath) + ".damaged", 100), "damaged");
  const auto link = std::make_shared<RecordedLink>();
  ASSERT_TRUE(topology_.Attach(AttachedEntry("n1", "r1", clock_.Now()), link).ok());
  ASSERT_TRUE(known_.Store(topology_).ok());
  EXPECT_TRUE(AfterARestart("n1").has_value());
}

TEST_F(KnownNodesTest, UnchangedTopologyIsNotWritten) {
  const auto link = std::make_shared<RecordedLink>();
  ASSERT_TRUE(topology_.Attach(AttachedEntry("n1", "r1", clock_.Now()), link).ok());
  ASSERT_TRUE(known_.Store(topology_).ok());
  const int64_t before = disk_.changes();
  ASSERT_TRUE(known_.Store(topology_).ok());
  EXPECT_EQ(disk_.changes(), before);
  topology_.Detach("n1", link.get());
  ASSERT_TRUE(known_.Store(topology_).ok());
  EXPECT_GT(disk_.changes(), before);
}

TEST_F(KnownNodesTest, NewNodeIsStoredByTheNextTick) {
  ASSERT_TRUE(known_.Tick(topology_).ok());
  const auto link = std::make_shared<RecordedLink>();
  ASSERT_TRUE(topology_.Attach(AttachedEntry("n1", "r1", clock_.Now()), link).ok());
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(known_.Tick(topology_).ok());
  EXPECT_TRUE(AfterARestart("n1").has_value());
}

TEST_F(KnownNodesTest, OtherChangesAreStoredEveryTenSeconds) {
  const auto link = std::make_shared<RecordedLink>();
  ASSERT_TRUE(topology_.Attach(AttachedEntry("n1", "r1", clock_.Now()), link).ok());
  ASSERT_TRUE(known_.Tick(topology_).ok());
  clock_.Advance(absl::Seconds(1));
  topology_.Detach("n1", link.get());
  const absl::Time went = clock_.Now();
  clock_.Advance(absl::Seconds(8));
  ASSERT_TRUE(known_.Tick(topology_).ok());
  EXPECT_NE(AfterARestart("n1")->since, went);
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(known_.Tick(topology_).ok());
  EXPECT_EQ(AfterARestart("n1")->since, went);
}

}  // namespace
}  // namespace muster
