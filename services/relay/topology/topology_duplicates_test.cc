// Two agents with one identity, as a relay and its child relays notice them.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/testing/recorded_link.h"
#include "services/relay/topology/topology.h"

namespace muster {
namespace {

class TopologyDuplicatesTest : public ::testing::Test {
 protected:
  void AttachRelay(const std::string& name) {
    EXPECT_TRUE(topology_
                    .Attach(AttachedEntry(name, "r1", clock_.Now(), /*is_relay=*/true),
                            std::make_shared<RecordedLink>())
                    .ok());
  }
  TopologyEntry Descendant(const std::string& name, const std::string& relay) {
    return AttachedEntry(name, relay, clock_.Now());
  }

  FakeClock clock_;
  Topology topology_{{.name = "r1", .is_root = false, .max_entries = 6}, clock_};
};

TEST_F(TopologyDuplicatesTest, OlderProcessIsRefusedWhileAYoungerOneIsAttached) {
  const auto entry = [this](const std::string& instance, absl::Duration began) {
    TopologyEntry made = AttachedEntry("n1", "r1", clock_.Now());
    made.instance = instance;
    made.began = began;
    return made;
  };
  const auto link = std::make_shared<RecordedLink>();
  ASSERT_TRUE(topology_.Attach(entry("a", absl::Seconds(10)), link).ok());
  EXPECT_TRUE(topology_.MayAttach(entry("a", absl::Seconds(9))).ok()) << "the same process";
  EXPECT_TRUE(topology_.MayAttach(entry("b", absl::Seconds(11))).ok()) << "it was restarted";
  topology_.DequeueChanges(100, /*all=*/false);
  const TopologyEntry older = entry("b", absl::Seconds(9));
  EXPECT_EQ(ReasonOf(topology_.MayAttach(older)), "DUPLICATE_AGENT");
  EXPECT_EQ(ReasonOf(topology_.Attach(older, std::make_shared<RecordedLink>()).status()),
            "DUPLICATE_AGENT");
  EXPECT_EQ(topology_.Route("n1"), link);
  EXPECT_EQ(topology_.Find("n1")->duplicate_agent_at, clock_.Now());
  const auto update = topology_.DequeueChanges(100, /*all=*/false);
  ASSERT_EQ(update.descendants_size(), 1);
  EXPECT_EQ(FromProto(update.descendants(0).duplicate_agent_time()), clock_.Now());
  topology_.Detach("n1", link.get());
  EXPECT_TRUE(topology_.MayAttach(older).ok());
}

TEST_F(TopologyDuplicatesTest, RefusalOfAnOlderProcessIsRememberedWhenTheYoungerOneAttachesAgain) {
  TopologyEntry younger = AttachedEntry("n1", "r1", clock_.Now());
  younger.instance = "a";
  younger.began = absl::Seconds(10);
  ASSERT_TRUE(topology_.Attach(younger, std::make_shared<RecordedLink>()).ok());
  TopologyEntry older = younger;
  older.instance = "b";
  older.began = absl::Seconds(9);
  EXPECT_FALSE(topology_.MayAttach(older).ok());
  const absl::Time refused = clock_.Now();
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(topology_.Attach(younger, std::make_shared<RecordedLink>()).ok());
  EXPECT_EQ(topology_.Find("n1")->duplicate_agent_at, refused);
}

TEST_F(TopologyDuplicatesTest, RefusalThatAChildRelayReportsFromTheFutureIsOfNow) {
  AttachRelay("r2");
  TopologyEntry reported = Descendant("n1", "r2");
  reported.duplicate_agent_at = clock_.Now() + absl::Hours(24 * 365);
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {reported}, {}, true).ok());
  EXPECT_EQ(topology_.Find("n1")->duplicate_agent_at, clock_.Now()) << "so that it expires";
}

// It needs no statement for a node that is detached.
TEST_F(TopologyDuplicatesTest, RefusalThatAnotherRelayReportsOfADetachedNodeIsIgnored) {
  AttachRelay("r2");
  AttachRelay("r3");
  TopologyEntry reported = Descendant("n1", "r2");
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {reported}, {}, true).ok());
  reported.attached = false;
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {reported}, {}, false).ok());
  reported.duplicate_agent_at = clock_.Now();
  ASSERT_TRUE(topology_.ApplyUpdate("r3", {reported}, {}, false).ok());
  EXPECT_EQ(topology_.Find("n1")->duplicate_agent_at, absl::InfinitePast());
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {reported}, {}, false).ok());
  EXPECT_EQ(topology_.Find("n1")->duplicate_agent_at, clock_.Now());
}

TEST_F(TopologyDuplicatesTest, LatestRefusalThatAChildRelayReportedIsRemembered) {
  AttachRelay("r2");
  TopologyEntry reported = Descendant("n1", "r2");
  for (const int s : {0, -1, 1}) {
    reported.duplicate_agent_at = clock_.Now() + absl::Seconds(s);
    reported.attached = s < 1;
    ASSERT_TRUE(topology_.ApplyUpdate("r2", {reported}, {}, false).ok());
    EXPECT_EQ(topology_.Find("n1")->duplicate_agent_at - clock_.Now(),
              absl::Seconds(s < 0 ? 0 : s));
  }
}

}  // namespace
}  // namespace muster
