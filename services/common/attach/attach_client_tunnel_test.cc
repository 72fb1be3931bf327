#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/attach/attach_client.h"
#include "services/common/attach/fake_parent.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/rpc.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint16_t kTunnel = 8002;

// The port kTunnel is that of a gateway, the others are those of relays.
class AttachClientTunnelTest : public ::testing::Test {
 protected:
  void Start(const std::vector<uint16_t>& ports) {
    AttachClientOptions options;
    for (const uint16_t port : ports) {
      options.targets.push_back({port == kTunnel ? "wss://gateway" : "relay", port});
    }
    options.uri = "spiffe://fleet.test/node/n1";
    client_ = std::make_unique<AttachClient>(std::move(options), delegate_,
                                             AttachRuntime{clock_, clock_, executor_},
                                             std::unique_ptr<ParentConnector>(connector_));
    client_->Start();
    executor_.AwaitIdle();
  }
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    executor_.AwaitIdle();
  }
  void Accept(uint16_t port) {
    connector_->at(port).Greet();
    connector_->at(port).Welcome();
    executor_.AwaitIdle();
  }
  void End(uint16_t port, absl::Status why) {
    connector_->at(port).End(std::move(why));
    executor_.AwaitIdle();
  }
  void EndByProxy(uint16_t port) { End(port, errors::Http2Refused("10.0.0.5:7445")); }
  // Lets time pass until the parent at `port` has a further connection.
  void AwaitProbe(uint16_t port, uint16_t attached_to) {
    const size_t before = connector_->connections(port);
    for (int i = 0; i < 1000 && connector_->connections(port) == before; ++i) {
      connector_->at(attached_to).Deliver({});
      connector_->at(attached_to).Drain();
      Advance(absl::Seconds(1));
    }
    ASSERT_EQ(connector_->connections(port), before + 1);
  }
  // Returns the link of the last hello to a parent.
  std::string LinkAt(uint16_t port) { return connector_->at(port).sent().back().hello().link(); }

  FakeClock clock_;
  Executor executor_{{"test", 1, 16}};
  RecordingDelegate delegate_;
  FakeConnector* connector_ = new FakeConnector(clock_);  // owned by client_
  std::unique_ptr<AttachClient> client_;
};

TEST_F(AttachClientTunnelTest, TunnelIsUsedWhereAProxyPassesNoHttp2AndTheParentIsTold) {
  Start({1, kTunnel});
  EndByProxy(1);
  ASSERT_EQ(connector_->connections(kTunnel), 1U);
  connector_->at(kTunnel).Greet();
  EXPECT_THAT(LinkAt(kTunnel), HasSubstr("websocket wss://gateway:8002"));
  EXPECT_THAT(LinkAt(kTunnel), HasSubstr("10.0.0.5:7445 ended without HTTP/2"));
  connector_->at(kTunnel).Welcome();
  executor_.AwaitIdle();
  EXPECT_TRUE(client_->attached());
  EXPECT_EQ(client_->target(), "wss://gateway:8002");
}

TEST_F(AttachClientTunnelTest, TunnelIsUsedWhereAProxyPresentsAForeignCertificate) {
  Start({1, kTunnel});
  End(1, errors::ServerCertificateRefused("10.0.0.5:7445", "it is of another fleet"));
  EXPECT_EQ(connector_->connections(kTunnel), 1U);
}

TEST_F(AttachClientTunnelTest, DirectConnectionHasNoLink) {
  Start({1, kTunnel});
  connector_->at(1).Greet();
  EXPECT_EQ(LinkAt(1), "");
}

TEST_F(AttachClientTunnelTest, ParentThatIsUnreachableOrRefusesAllowsNoTunnel) {
  Start({1, kTunnel});
  for (const absl::Status& why :
       {errors::Unreachable("cannot connect to 10.0.0.5:7445: Connection refused"),
        errors::CallerRevoked(), errors::RelayRefused("its greeting does not match"),
        absl::UnavailableError("gone")}) {
    const size_t before = connector_->connections(1);
    End(1, why);
    for (int i = 0; i < 100 && connector_->connections(1) == before; ++i) {
      Advance(absl::Seconds(1));
    }
    EXPECT_EQ(connector_->connections(1), before + 1) << why;
  }
  EXPECT_EQ(connector_->connections(kTunnel), 0U);
}

TEST_F(AttachClientTunnelTest, ProxyBeforeOneOfTheParentsIsSufficient) {
  Start({1, 2, kTunnel});
  EndByProxy(1);
  End(2, absl::UnavailableError("gone"));
  EXPECT_EQ(connector_->connections(kTunnel), 1U);
}

TEST_F(AttachClientTunnelTest, FaultOfAnEarlierRoundAllowsNoTunnel) {
  Start({1, kTunnel});
  EndByProxy(1);
  End(kTunnel, absl::UnavailableError("gone"));
  while (connector_->connections(1) < 2) Advance(absl::Seconds(1));
  End(1, absl::UnavailableError("gone"));
  while (connector_->connections(1) < 3) Advance(absl::Seconds(1));
  EXPECT_EQ(connector_->connections(kTunnel), 1U);
}

TEST_F(AttachClientTunnelTest, ConfiguredTunnelNeedsNoReason) {
  Start({kTunnel});
  connector_->at(kTunnel).Greet();
  EXPECT_THAT(LinkAt(kTunnel), HasSubstr("it is the configured link"));
}

TEST_F(AttachClientTunnelTest, ChildReturnsToADirectConnectionThatWorksAgain) {
  Start({1, kTunnel});
  EndByProxy(1);
  Accept(kTunnel);
  AwaitProbe(1, kTunnel);
  EndByProxy(1);
  EXPECT_TRUE(client_->attached());
  EXPECT_EQ(client_->target(), "wss://gateway:8002");
  AwaitProbe(1, kTunnel);
  Accept(1);
  EXPECT_EQ(client_->target(), "relay:1");
  EXPECT_THAT(delegate_.TakeCalls(), ElementsAre("welcome", "lost", "welcome"));
}

// The direct address leads to the same relay: it ends the stream through the tunnel itself.
TEST_F(AttachClientTunnelTest, RelayThatTakesOverTheChildKeepsTheDirectStream) {
  Start({1, kTunnel});
  EndByProxy(1);
  Accept(kTunnel);
  AwaitProbe(1, kTunnel);
  connector_->at(1).Greet();
  connector_->at(1).Welcome();
  End(kTunnel, errors::ChildTakenOver("n1"));
  EXPECT_TRUE(client_->attached());
  EXPECT_EQ(client_->target(), "relay:1");
  EXPECT_EQ(connector_->connections(1), 2U);
  EXPECT_THAT(delegate_.TakeCalls(), ElementsAre("welcome", "lost", "welcome"));
}

TEST_F(AttachClientTunnelTest, LostTunnelIsFollowedByADirectAttempt) {
  Start({1, kTunnel});
  EndByProxy(1);
  Accept(kTunnel);
  for (int i = 0; i < 5; ++i) Advance(absl::Seconds(1));
  End(kTunnel, errors::Unreachable("Socket closed"));
  for (int i = 0; i < 10 && connector_->connections(1) < 2; ++i) Advance(absl::Seconds(1));
  ASSERT_EQ(connector_->connections(1), 2U);
  EXPECT_EQ(connector_->connections(kTunnel), 1U);
  Accept(1);
  EXPECT_EQ(client_->target(), "relay:1");
}

}  // namespace
}  // namespace muster
