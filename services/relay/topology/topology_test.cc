#include "services/relay/topology/topology.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/testing/recorded_link.h"

namespace muster {
namespace {

class TopologyTest : public ::testing::Test {
 protected:
  TopologyTest() {
    topology_.Listen([this](const auto& names) { Note(names); }, Relay());
  }

  void Note(const std::vector<std::string>& names) {
    reachable_.insert(reachable_.end(), names.begin(), names.end());
  }
  Topology::RelayChanged Relay() {
    return [this](const std::string& relay, bool attached) {
      relays_.push_back((attached ? "+" : "-") + relay);
    };
  }
  std::shared_ptr<RecordedLink> Attach(const std::string& name, bool is_relay = false) {
    auto link = std::make_shared<RecordedLink>();
    const auto old =
        topology_.Attach(AttachedEntry(name, topology_.name(), clock_.Now(), is_relay), link);
    EXPECT_TRUE(old.ok()) << old.status();
    return link;
  }
  TopologyEntry Descendant(const std::string& name, const std::string& relay) {
    return AttachedEntry(name, relay, clock_.Now());
  }
  std::vector<std::string> DequeueChanged(bool all = false) {
    std::vector<std::string> uris;
    const auto update = topology_.DequeueChanges(100, all);
    for (const auto& child : update.descendants()) {
      const std::string& uri = child.statement().child();
      uris.push_back((child.attached() ? "+" : "-") + uri.substr(uri.rfind('/') + 1));
    }
    return uris;
  }

  FakeClock clock_;
  Topology topology_{{.name = "r1", .is_root = false, .max_entries = 6}, clock_};
  std::vector<std::string> reachable_;
  std::vector<std::string> relays_;
};

TEST_F(TopologyTest, ChildIsReachableUntilItsStreamEnds) {
  EXPECT_EQ(topology_.Route("n1"), nullptr);
  const auto link = Attach("n1");
  EXPECT_EQ(topology_.Route("n1"), link);
  EXPECT_EQ(reachable_, std::vector<std::string>{"n1"});
  topology_.Detach("n1", link.get());
  EXPECT_EQ(topology_.Route("n1"), nullptr);
  ASSERT_TRUE(topology_.Find("n1").has_value()) << "it stays known";
  EXPECT_FALSE(topology_.Find("n1")->attached);
}

TEST_F(TopologyTest, EndOfReplacedStreamDetachesNothing) {
  const auto first = Attach("n1");
  auto second = std::make_shared<RecordedLink>();
  const auto old = topology_.Attach(AttachedEntry("n1", "r1", clock_.Now()), second);
  ASSERT_TRUE(old.ok());
  EXPECT_EQ(*old, first);
  topology_.Detach("n1", first.get());
  EXPECT_EQ(topology_.Route("n1"), second);
  EXPECT_EQ(reachable_, (std::vector<std::string>{"n1", "n1"}))
      << "it may have lost what was sent to it";
}

TEST_F(TopologyTest, DescendantsAreRoutedThroughTheirRelay) {
  const auto relay = Attach("r2", true);
  ASSERT_TRUE(
      topology_.ApplyUpdate("r2", {Descendant("n1", "r2"), Descendant("n2", "r2")}, {}, true).ok());
  EXPECT_EQ(topology_.Route("n2"), relay);
  EXPECT_EQ(topology_.NextHop("n2"), "r2");
  EXPECT_EQ(topology_.CountDescendants()["r2"], 2);
  EXPECT_EQ(relays_, std::vector<std::string>{"+r2"});
  topology_.Detach("r2", relay.get());
  EXPECT_EQ(topology_.Route("n1"), nullptr);
  EXPECT_EQ(topology_.attached(), 0U);
  EXPECT_EQ(relays_.back(), "-r2");
}

TEST_F(TopologyTest, CompleteListDetachesMissingDescendants) {
  const auto first = Attach("r2", true);
  ASSERT_TRUE(
      topology_.ApplyUpdate("r2", {Descendant("n1", "r2"), Descendant("n2", "r2")}, {}, true).ok());
  const auto second = Attach("r2", true);
  topology_.Detach("r2", first.get());
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {Descendant("n2", "r2")}, {}, true).ok());
  EXPECT_EQ(topology_.Route("n1"), nullptr);
  EXPECT_EQ(topology_.Route("n2"), second);
}

TEST_F(TopologyTest, MovedNodeIsRoutedThroughItsNewParent) {
  Attach("r2", true);
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {Descendant("n1", "r2")}, {}, true).ok());
  const auto own = Attach("n1");
  EXPECT_EQ(topology_.Route("n1"), own);
  TopologyEntry gone = Descendant("n1", "r2");
  gone.attached = false;
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {gone}, {}, false).ok());
  EXPECT_EQ(topology_.Route("n1"), own) << "the report is older than the node's stream";
}

TEST_F(TopologyTest, NodeThatAttachedAgainIsReportedReachableAgain) {
  Attach("r2", true);
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {Descendant("n1", "r2")}, {}, true).ok());
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {Descendant("n1", "r2")}, {}, false).ok());
  EXPECT_EQ(reachable_, (std::vector<std::string>{"r2", "n1"}))
      << "a renewed statement is no new attachment";
  clock_.Advance(absl::Milliseconds(100));
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {Descendant("n1", "r2")}, {}, false).ok());
  EXPECT_EQ(reachable_, (std::vector<std::string>{"r2", "n1", "n1"}));
  DequeueChanged();
  EXPECT_EQ(FromProto(topology_.DequeueChanges(100, true).descendants(1).change_time()),
            clock_.Now())
      << "the precision is kept";
}

TEST_F(TopologyTest, AncestorCannotBecomeDescendant) {
  topology_.SetPath({"root", "r0", "r1"});
  auto link = std::make_shared<RecordedLink>();
  for (const char* ancestor : {"root", "r0", "r1"}) {
    const auto refused = topology_.Attach(AttachedEntry(ancestor, "r1", clock_.Now(), true), link);
    EXPECT_EQ(ReasonOf(refused.status()), "RELAY_LOOP") << ancestor;
  }
  Attach("r2", true);
  TopologyEntry loop = AttachedEntry("r0", "r2", clock_.Now(), true);
  EXPECT_EQ(ReasonOf(topology_.ApplyUpdate("r2", {loop}, {}, true)), "RELAY_LOOP");
  EXPECT_FALSE(topology_.Find("r0").has_value());
}

TEST_F(TopologyTest, RelayThatReportsItselfIsRejectedAndKeepsItsStream) {
  const auto relay = Attach("r2", true);
  clock_.Advance(absl::Seconds(2));
  const TopologyEntry itself = AttachedEntry("r2", "r2", clock_.Now(), /*is_relay=*/true);
  EXPECT_EQ(ReasonOf(topology_.ApplyUpdate("r2", {itself, Descendant("n1", "r2")}, {}, true)),
            "RELAY_LOOP");
  EXPECT_TRUE(relay->end().ok());
  EXPECT_EQ(topology_.Route("n1"), relay);
}

TEST_F(TopologyTest, TwentyFirstRelayInARowIsRejected) {
  std::vector<std::string> path;
  for (int i = 0; i < 18; ++i) path.push_back("ancestor" + std::to_string(i));
  path.push_back("r1");  // the 19th
  topology_.SetPath(path);
  Attach("r20", true);
  path.insert(path.begin(), "one-more");
  topology_.SetPath(path);
  const auto refused = topology_.Attach(AttachedEntry("r21", "r1", clock_.Now(), true),
                                        std::make_shared<RecordedLink>());
  EXPECT_EQ(ReasonOf(refused.status()), "RELAY_TOO_DEEP");
  Attach("n1");  // a node is no relay in a row
}

TEST_F(TopologyTest, ChangesAreReturnedOnceAndRelaysFirst) {
  Attach("a-node");
  Attach("z-relay", true);
  EXPECT_EQ(DequeueChanged(), (std::vector<std::string>{"+z-relay", "+a-node"}));
  EXPECT_FALSE(topology_.HasChanges());
  const auto link = Attach("a-node");
  topology_.Detach("a-node", link.get());
  EXPECT_EQ(DequeueChanged(), std::vector<std::string>{"-a-node"}) << "only the present state";
  EXPECT_EQ(DequeueChanged(true), (std::vector<std::string>{"+z-relay", "-a-node"}));
}

TEST_F(TopologyTest, ExpiredStatementEndsTheStream) {
  const auto link = Attach("n1");
  topology_.Tick();
  EXPECT_TRUE(link->end().ok());
  clock_.Advance(absl::Hours(1) + absl::Seconds(2));
  topology_.Tick();
  EXPECT_EQ(ReasonOf(link->end()), "STATEMENT_EXPIRED");
}

TEST_F(TopologyTest, RefreshedStatementKeepsTheStream) {
  const auto link = Attach("n1");
  clock_.Advance(absl::Minutes(50));
  topology_.Refresh("n1", link.get(), AttachedEntry("n1", "r1", clock_.Now()).statement);
  clock_.Advance(absl::Minutes(50));
  topology_.Tick();
  EXPECT_TRUE(link->end().ok());
}

TEST_F(TopologyTest, RevokedNodeIsRemoved) {
  const auto link = Attach("n1");
  DequeueChanged();
  topology_.Forget("spiffe://fleet.test/node/n1");
  EXPECT_EQ(ReasonOf(link->end()), "IDENTITY_REVOKED");
  EXPECT_FALSE(topology_.Find("n1").has_value());
  EXPECT_EQ(topology_.DequeueChanges(10, false).forgotten_uris(0), "spiffe://fleet.test/node/n1");
}

TEST_F(TopologyTest, RevokedRelayDetachesItsDescendants) {
  Attach("r2", true);
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {Descendant("n1", "r2")}, {}, true).ok());
  topology_.Forget("spiffe://fleet.test/service/relay/r2");
  EXPECT_FALSE(topology_.Find("n1")->attached);
  EXPECT_EQ(topology_.NextHop("n1"), "");
}

TEST_F(TopologyTest, RelayForgetsItsOwnDescendantsOnly) {
  Attach("r2", true);
  Attach("r3", true);
  const auto link = Attach("n1");
  const auto uri = [](const std::string& node) { return "spiffe://fleet.test/node/" + node; };
  ASSERT_TRUE(topology_.ApplyUpdate("r3", {Descendant("n3", "r3")}, {}, true).ok());
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {Descendant("n2", "r2")}, {}, true).ok());
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {}, {uri("n1"), uri("n2"), uri("n3")}, false).ok());
  EXPECT_EQ(topology_.NextHop("n1"), "n1");
  EXPECT_EQ(link->end(), absl::OkStatus());
  EXPECT_EQ(topology_.NextHop("n3"), "r3");
  EXPECT_FALSE(topology_.Find("n2").has_value());
}

TEST_F(TopologyTest, DetachedEntryWithoutAStatementIsNotAdded) {
  Attach("r2", true);
  TopologyEntry proven = Descendant("n1", "r2");
  proven.attached = false;
  proven.since = absl::InfiniteFuture();
  TopologyEntry invented = Descendant("n2", "r2");
  invented.attached = false;
  invented.statement = nullptr;
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {proven, invented}, {}, true).ok());
  EXPECT_FALSE(topology_.Find("n2").has_value());
  ASSERT_TRUE(topology_.Find("n1").has_value());
  EXPECT_EQ(topology_.Find("n1")->since, clock_.Now()) << "so that it expires";
}

TEST_F(TopologyTest, NodeWithANewerStatementHasMovedFromItsDeadStream) {
  Attach("r2", true);
  const auto link = Attach("n1");
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {Descendant("n1", "r2")}, {}, false).ok());
  EXPECT_EQ(topology_.NextHop("n1"), "n1") << "its statement is as old";
  clock_.Advance(absl::Seconds(2));
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {Descendant("n1", "r2")}, {}, false).ok());
  EXPECT_EQ(topology_.NextHop("n1"), "r2");
  EXPECT_EQ(ReasonOf(link->end()), "TAKEN_OVER");
  topology_.Detach("n1", link.get());
  EXPECT_EQ(topology_.NextHop("n1"), "r2");
}

TEST_F(TopologyTest, FormerParentDoesNotMoveANodeBack) {
  Attach("r2", true);
  Attach("r3", true);
  const TopologyEntry before = Descendant("n1", "r2");
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {before}, {}, true).ok());
  clock_.Advance(absl::Minutes(2));
  ASSERT_TRUE(topology_.ApplyUpdate("r3", {Descendant("n1", "r3")}, {}, true).ok());
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {before}, {}, false).ok());
  EXPECT_EQ(topology_.NextHop("n1"), "r3");
}

TEST_F(TopologyTest, RevokedCertificateRemovesItsNode) {
  TopologyEntry entry = AttachedEntry("n1", "r1", clock_.Now());
  entry.certificate = "issuer:01";
  const auto link = std::make_shared<RecordedLink>();
  ASSERT_TRUE(topology_.Attach(entry, link).ok());
  topology_.Detach("n1", link.get());
  topology_.Forget("issuer:02");
  EXPECT_TRUE(topology_.Find("n1").has_value());
  topology_.Forget("issuer:01");
  EXPECT_FALSE(topology_.Find("n1").has_value()) << "also while it is detached";
}

TEST_F(TopologyTest, RemovedNodeIsNotRestoredByAnUpdate) {
  Attach("r2", true);
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {Descendant("n1", "r2")}, {}, true).ok());
  topology_.Forget("spiffe://fleet.test/node/n1");
  TopologyEntry gone = Descendant("n1", "r2");
  gone.attached = false;
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {gone}, {}, false).ok());
  EXPECT_FALSE(topology_.Find("n1").has_value());
}

TEST_F(TopologyTest, NodeIsDownstreamOfTheChildThatItIsOrWasLastRoutedThrough) {
  Attach("r2", true);
  Attach("r3", true);
  const auto local = Attach("n1");
  TopologyEntry r4 = AttachedEntry("r4", "r2", clock_.Now(), /*is_relay=*/true);
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {r4, Descendant("n2", "r4")}, {}, true).ok());
  EXPECT_TRUE(topology_.IsDownstreamOf("n2", "r2"));
  EXPECT_FALSE(topology_.IsDownstreamOf("n2", "r3"));
  EXPECT_FALSE(topology_.IsDownstreamOf("n2", "r4")) << "it is no child of this relay";
  EXPECT_FALSE(topology_.IsDownstreamOf("r4", "r2")) << "it is no node";
  EXPECT_FALSE(topology_.IsDownstreamOf("n1", "r2"));
  EXPECT_FALSE(topology_.IsDownstreamOf("n9", "r2"));
  TopologyEntry detached = Descendant("n2", "r4");
  detached.attached = false;
  ASSERT_TRUE(topology_.ApplyUpdate("r2", {detached}, {}, false).ok());
  EXPECT_TRUE(topology_.IsDownstreamOf("n2", "r2"));
  ASSERT_TRUE(topology_.ApplyUpdate("r3", {Descendant("n2", "r3")}, {}, true).ok());
  EXPECT_FALSE(topology_.IsDownstreamOf("n2", "r2"));
  EXPECT_TRUE(topology_.IsDownstreamOf("n2", "r3"));
}

TEST_F(TopologyTest, NodeDetachedForAWeekIsRemoved) {
  const auto link = Attach("n1");
  topology_.Detach("n1", link.get());
  clock_.Advance(kRemembered - absl::Minutes(1));
  topology_.Tick();
  EXPECT_TRUE(topology_.Find("n1").has_value());
  clock_.Advance(absl::Minutes(2));
  topology_.Tick();
  EXPECT_FALSE(topology_.Find("n1").has_value());
}

TEST_F(TopologyTest, EntriesBeyondTheLimitAreRejected) {
  for (int i = 0; i < 6; ++i) Attach("n" + std::to_string(i));
  const auto refused =
      topology_.Attach(AttachedEntry("n6", "r1", clock_.Now()), std::make_shared<RecordedLink>());
  EXPECT_EQ(ReasonOf(refused.status()), "TOO_MANY_CHILDREN");
  Attach("n3");  // a known node may attach again
}

TEST_F(TopologyTest, RestoredEntriesAreDetached) {
  Attach("n1");
  Attach("r2", true);
  Topology next({.name = "r1", .is_root = true}, clock_);
  next.Restore(topology_.Snapshot());
  EXPECT_EQ(next.Nodes(), std::vector<std::string>{"n1"});
  EXPECT_EQ(next.Route("n1"), nullptr);
  EXPECT_EQ(next.attached(), 0U);
}

}  // namespace
}  // namespace muster
