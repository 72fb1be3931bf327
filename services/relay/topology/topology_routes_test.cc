// Several children that report the same node.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/relay/testing/recorded_link.h"
#include "services/relay/topology/topology.h"

namespace muster {
namespace {

class TopologyRoutesTest : public ::testing::Test {
 protected:
  TopologyRoutesTest() {
    topology_.Listen([this](const auto& names) { reachable_ = names; }, nullptr);
    r2_ = Attach("r2", /*is_relay=*/true);
    r3_ = Attach("r3", /*is_relay=*/true);
    for (const char* relay : {"r2", "r3"}) {
      EXPECT_TRUE(topology_.ApplyUpdate(relay, {}, {}, /*complete=*/true).ok());
    }
  }

  std::shared_ptr<RecordedLink> Attach(const std::string& name, bool is_relay = false) {
    auto link = std::make_shared<RecordedLink>();
    EXPECT_TRUE(topology_.Attach(AttachedEntry(name, "root", clock_.Now(), is_relay), link).ok());
    return link;
  }
  // A child relay reports that n1 is attached to it, or was.
  void Report(const std::string& relay, bool attached = true, bool complete = false) {
    TopologyEntry entry = AttachedEntry("n1", relay, clock_.Now());
    entry.attached = attached;
    ASSERT_TRUE(topology_.ApplyUpdate(relay, {entry}, {}, complete).ok());
  }

  FakeClock clock_;
  Topology topology_{{.name = "root", .max_entries = 6}, clock_};
  std::shared_ptr<RecordedLink> r2_;
  std::shared_ptr<RecordedLink> r3_;
  std::vector<std::string> reachable_;  // the last names
};

TEST_F(TopologyRoutesTest, LateStreamThatEndsLeavesTheNodeAtItsRelay) {
  Report("r2");
  const auto late = Attach("n1");
  EXPECT_EQ(topology_.NextHop("n1"), "n1");
  reachable_.clear();
  topology_.Detach("n1", late.get());
  EXPECT_EQ(topology_.Route("n1"), r2_);
  EXPECT_TRUE(topology_.IsDownstreamOf("n1", "r2")) << "its records are accepted";
  EXPECT_EQ(topology_.Find("n1")->relay, "r2");
  EXPECT_EQ(topology_.attached(), 3u);
  EXPECT_EQ(reachable_, std::vector<std::string>{"n1"}) << "the late stream may have lost messages";
}

TEST_F(TopologyRoutesTest, ReportOfTheSameSecondHoldsWhenTheStreamEnds) {
  const auto dead = Attach("n1");
  Report("r2");
  EXPECT_EQ(topology_.NextHop("n1"), "n1");
  topology_.Detach("n1", dead.get());
  EXPECT_EQ(topology_.Route("n1"), r2_);
}

TEST_F(TopologyRoutesTest, LateReportThatEndsLeavesTheNodeAtItsRelay) {
  Report("r2");
  Report("r3");
  EXPECT_EQ(topology_.NextHop("n1"), "r3");
  Report("r3", /*attached=*/false);
  EXPECT_EQ(topology_.Route("n1"), r2_);
}

TEST_F(TopologyRoutesTest, NodeThatItsRelayReportedDetachedMeanwhileIsDetached) {
  Report("r2");
  const auto link = Attach("n1");
  Report("r2", /*attached=*/false);
  EXPECT_EQ(topology_.NextHop("n1"), "n1");
  topology_.Detach("n1", link.get());
  EXPECT_EQ(topology_.NextHop("n1"), "");
  EXPECT_FALSE(topology_.Find("n1")->attached);
}

TEST_F(TopologyRoutesTest, NodeIsDetachedIfItsRelayHasLeftMeanwhile) {
  Report("r2");
  const auto link = Attach("n1");
  topology_.Detach("r2", r2_.get());
  Attach("r2", /*is_relay=*/true);
  topology_.Detach("n1", link.get());
  EXPECT_EQ(topology_.NextHop("n1"), "");
}

TEST_F(TopologyRoutesTest, NodeIsDetachedIfTheNextListOfItsRelayOmitsIt) {
  Report("r2");
  const auto link = Attach("n1");
  const auto next = Attach("r2", /*is_relay=*/true);
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {}, {}, /*complete=*/true).ok());
  topology_.Detach("n1", link.get());
  EXPECT_EQ(topology_.NextHop("n1"), "");
}

TEST_F(TopologyRoutesTest, NodeStaysAtItsRelayIfTheNextListContainsIt) {
  Report("r2");
  const auto link = Attach("n1");
  const auto next = Attach("r2", /*is_relay=*/true);
  Report("r2", /*attached=*/true, /*complete=*/true);
  topology_.Detach("n1", link.get());
  EXPECT_EQ(topology_.Route("n1"), next);
}

TEST_F(TopologyRoutesTest, NodeIsRoutedThroughAnotherRelayThatHasItWhenItsRelayLeaves) {
  Report("r2");
  Report("r3");
  topology_.Detach("r3", r3_.get());
  EXPECT_EQ(topology_.Route("n1"), r2_);
}

TEST_F(TopologyRoutesTest, NextListWithoutTheNodeMovesItToTheRelayThatHasIt) {
  Report("r2");
  Report("r3");
  Attach("r3", /*is_relay=*/true);
  ASSERT_TRUE(topology_.ApplyUpdate("r3", {}, {}, /*complete=*/true).ok());
  EXPECT_EQ(topology_.Route("n1"), r2_);
}

TEST_F(TopologyRoutesTest, ExpiredReportIsNoRoute) {
  Report("r2");
  clock_.Advance(absl::Minutes(50));
  const auto link = Attach("n1");
  clock_.Advance(absl::Minutes(11));
  topology_.Detach("n1", link.get());
  EXPECT_FALSE(topology_.Find("n1")->attached);
}

TEST_F(TopologyRoutesTest, RevokedNodeHasNoOtherRoute) {
  Report("r2");
  const auto link = Attach("n1");
  topology_.Forget("spiffe://fleet.test/node/n1");
  EXPECT_FALSE(topology_.Find("n1").has_value());
  const auto next = Attach("n1");
  topology_.Detach("n1", next.get());
  EXPECT_FALSE(topology_.Find("n1")->attached);
}

TEST_F(TopologyRoutesTest, CertificateForgetsNoDescendant) {
  TopologyEntry entry = AttachedEntry("n1", "r2", clock_.Now());
  entry.certificate = "issuer:01";
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {entry}, {}, /*complete=*/false).ok());
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {}, {"issuer:01", "n1"}, /*complete=*/false).ok());
  EXPECT_TRUE(topology_.Find("n1").has_value());
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {}, {entry.uri}, /*complete=*/false).ok());
  EXPECT_FALSE(topology_.Find("n1").has_value());
}

}  // namespace
}  // namespace muster
