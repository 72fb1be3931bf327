#include "services/relay/upstream/upstream_base.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/relay/testing/recorded_link.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet.test";

class NoUpstream final : public UpstreamBase {
 public:
  using UpstreamBase::UpstreamBase;
  std::shared_ptr<grpc::Channel> Results() override { return nullptr; }
  std::shared_ptr<grpc::Channel> Status() override { return nullptr; }
  std::shared_ptr<grpc::Channel> Joining() override { return nullptr; }
  std::shared_ptr<grpc::Channel> Jobs() override { return nullptr; }
  absl::Status JobsUnreachable() const override { return absl::UnavailableError("no jobs"); }
  bool connected() const override { return false; }
};

Identity Relay(const std::string& name) {
  return {kFleet, ServiceIdentity{ServiceRole::kRelay, name}};
}

// Relay r1 with the node n1, and the child relays r2, which has the node n2, and r3.
class UpstreamBaseTest : public ::testing::Test {
 protected:
  UpstreamBaseTest() {
    Attach(AttachedEntry("n1", "r1", clock_.Now()));
    for (const char* relay : {"r2", "r3"}) {
      Attach(AttachedEntry(relay, "r1", clock_.Now(), /*is_relay=*/true));
    }
    EXPECT_TRUE(
        topology_.ApplyUpdate("r2", {AttachedEntry("n2", "r2", clock_.Now())}, {}, true).ok());
  }

  void Attach(TopologyEntry entry) {
    EXPECT_TRUE(topology_.Attach(std::move(entry), std::make_shared<RecordedLink>()).ok());
  }

  // Returns the relay of the statement for a call of the node, or the error.
  std::string StatementFor(const std::string& node, std::optional<Identity> via = std::nullopt) {
    Caller caller;
    caller.identity = {kFleet, NodeIdentity{node}};
    caller.via = std::move(via);
    const auto bytes = upstream_.StatementFor(caller);
    if (!bytes.ok()) return ReasonOf(bytes.status());
    v1::AttachStatement statement;
    EXPECT_TRUE(statement.ParseFromString(*bytes));
    return statement.relay().substr(statement.relay().rfind('/') + 1);
  }

  FakeClock clock_;
  Topology topology_{{.name = "r1", .is_root = false}, clock_};
  NoUpstream upstream_{topology_};
};

TEST_F(UpstreamBaseTest, NodeCallsThroughItsRelayAndItsAncestors) {
  EXPECT_EQ(StatementFor("n1"), "r1");
  EXPECT_EQ(StatementFor("n2", Relay("r2")), "r2");
}

TEST_F(UpstreamBaseTest, RelayDoesNotCallForANodeThatIsNoDescendant) {
  EXPECT_EQ(StatementFor("n1", Relay("r2")), "NOT_ATTACHED");
  EXPECT_EQ(StatementFor("n2", Relay("r3")), "NOT_ATTACHED");
  EXPECT_EQ(StatementFor("n2"), "NOT_ATTACHED") << "its call does not come from its relay";
  EXPECT_EQ(StatementFor("n3", Relay("r3")), "NOT_ATTACHED");
  EXPECT_EQ(StatementFor("n1", Identity{kFleet, ServiceIdentity{ServiceRole::kGateway, "g"}}),
            "NOT_ATTACHED");
}

TEST_F(UpstreamBaseTest, FormerParentDoesNotCallForANodeThatHasLeft) {
  clock_.Advance(absl::Minutes(5));
  Attach(AttachedEntry("n2", "r1", clock_.Now()));
  EXPECT_EQ(StatementFor("n2", Relay("r2")), "NOT_ATTACHED");
  EXPECT_EQ(StatementFor("n2"), "r1");
}

TEST_F(UpstreamBaseTest, OnlyAttachedRelaysAreChildRelays) {
  Caller caller;
  caller.identity = Relay("r2");
  EXPECT_TRUE(upstream_.CheckChildRelay(caller).ok());
  v1::AttachStatement statement;
  EXPECT_TRUE(statement.ParseFromString(*upstream_.StatementOfChildRelay(caller)));
  EXPECT_EQ(statement.child(), *ToUri(Relay("r2")));
  caller.via = Relay("r3");
  EXPECT_EQ(ReasonOf(upstream_.CheckChildRelay(caller)), "NOT_ATTACHED");
  caller = {};
  caller.identity = Relay("r4");
  EXPECT_EQ(ReasonOf(upstream_.CheckChildRelay(caller)), "NOT_ATTACHED");
  EXPECT_EQ(ReasonOf(upstream_.StatementOfChildRelay(caller).status()), "NOT_ATTACHED");
  caller.identity = {kFleet, NodeIdentity{"n1"}};
  EXPECT_EQ(ReasonOf(upstream_.CheckChildRelay(caller)), "NOT_ATTACHED");
}

}  // namespace
}  // namespace muster
