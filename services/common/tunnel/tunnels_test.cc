#include "services/common/tunnel/tunnels.h"

#include <string>

#include "gtest/gtest.h"
#include "services/common/tunnel/tunnel_status.h"

namespace muster {
namespace {

TEST(TunnelsTest, EachGatewayAndListenerHasOneEndpoint) {
  const HostPort gateway{"wss://gateway.invalid", 8002};
  const std::string relay = TunnelTarget(gateway, TunnelTo::kRelay);
  EXPECT_EQ(TunnelTarget(gateway, TunnelTo::kRelay), relay);
  EXPECT_NE(TunnelTarget(gateway, TunnelTo::kJoin), relay);
  ASSERT_TRUE(FindTunnelStatus(relay));
  EXPECT_EQ(FindTunnelStatus(relay)->address, "wss://gateway.invalid:8002");
  EXPECT_EQ(DescribeTunnel(gateway), "") << "it was not used yet";
  EXPECT_EQ(DescribeTunnel({"wss://other.invalid", 8002}), "");
}

TEST(TunnelsTest, SeventeenthTunnelIsNotOpened) {
  std::string last;
  for (uint16_t port = 1; port <= kMaxTunnels; ++port) {
    last = TunnelTarget({"wss://gateway.invalid", port}, TunnelTo::kRelay);
  }
  last = TunnelTarget({"wss://gateway.invalid", 17}, TunnelTo::kRelay);
  EXPECT_EQ(FindTunnelStatus(last)->fault, "this process has 16 tunnels");
  EXPECT_TRUE(FindTunnelStatus(TunnelTarget({"wss://gateway.invalid", 1}, TunnelTo::kRelay)));
}

}  // namespace
}  // namespace muster
