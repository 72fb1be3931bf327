#include "services/common/rpc/close_connection.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/base/metrics.h"
#include "services/common/base/unique_fd.h"
#include "services/common/rpc/connection_closer.h"
#include "services/common/rpc/rpc_metrics.h"

namespace muster {
namespace {

// Two connections to a listener on loopback.
class CloseConnectionTest : public ::testing::TestWithParam<int> {
 protected:
  CloseConnectionTest() : listener_(socket(GetParam(), SOCK_STREAM, 0)) {
    sockaddr_storage address = Loopback();
    socklen_t length = sizeof(address);
    bound_ = bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length) == 0;
    listen(listener_.get(), 8);
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length);
    port_ = PortOf(address);
    for (int i = 0; i < 2; ++i) {
      client_[i] = UniqueFd(socket(GetParam(), SOCK_STREAM, 0));
      connect(client_[i].get(), reinterpret_cast<sockaddr*>(&address), length);
      server_[i] = UniqueFd(accept(listener_.get(), nullptr, nullptr));
    }
  }

  void SetUp() override {
    if (!bound_) GTEST_SKIP() << "this machine has no such address";
  }

  static sockaddr_storage Loopback() {
    sockaddr_storage address = {};
    address.ss_family = static_cast<sa_family_t>(GetParam());
    if (GetParam() == AF_INET) {
      reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
      reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_loopback;
    }
    return address;
  }

  static int PortOf(const sockaddr_storage& address) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);  // as of sockaddr_in6
  }

  // As gRPC writes it.
  std::string Peer(int i) const {
    sockaddr_storage address = {};
    socklen_t length = sizeof(address);
    getsockname(client_[i].get(), reinterpret_cast<sockaddr*>(&address), &length);
    return absl::StrCat(GetParam() == AF_INET ? "ipv4:127.0.0.1:" : "ipv6:%5B::1%5D:",
                        PortOf(address));
  }

  bool IsClosed(int i) const {
    char byte = 0;
    return recv(client_[i].get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  // Waits until a connection is closed and returns its number; -1 after 30 s.
  int AwaitClosed() const {
    pollfd clients[2] = {{client_[0].get(), POLLIN, 0}, {client_[1].get(), POLLIN, 0}};
    if (poll(clients, 2, 30'000) <= 0) return -1;
    return IsClosed(0) ? 0 : 1;
  }

  Metrics metrics_;
  RpcMetrics rpc_metrics_{metrics_};
  ConnectionCloser closer_{rpc_metrics_};
  bool bound_ = false;
  UniqueFd listener_;
  UniqueFd client_[2];
  UniqueFd server_[2];
  int port_ = 0;
};

TEST_P(CloseConnectionTest, OnlyTheConnectionOfThePeerIsClosed) {
  EXPECT_TRUE(OpenConnections({port_}).Close(Peer(1), port_));
  EXPECT_FALSE(IsClosed(0));
  EXPECT_TRUE(IsClosed(1));
}

TEST_P(CloseConnectionTest, UnknownPeerOrOtherPortIsIgnored) {
  EXPECT_FALSE(OpenConnections({port_}).Close("ipv4:192.0.2.1:4711", port_));
  EXPECT_FALSE(OpenConnections({port_}).Close("unix:", port_));
  EXPECT_FALSE(OpenConnections({port_}).Close(Peer(0), port_ - 1));
  EXPECT_FALSE(IsClosed(0));
}

TEST_P(CloseConnectionTest, ConnectionsAboveTheLimitOfTheirAddressAreClosed) {
  EXPECT_EQ(OpenConnections({port_}).CloseExcess(port_, {.of_address = 2, .in_all = 2}), 0u);
  EXPECT_EQ(OpenConnections({port_}).CloseExcess(port_, {.of_address = 1, .in_all = 2}), 1u);
  EXPECT_NE(IsClosed(0), IsClosed(1));
}

TEST_P(CloseConnectionTest, ConnectionsAboveTheLimitInAllAreClosed) {
  EXPECT_EQ(OpenConnections({port_}).CloseExcess(port_, {.of_address = 2, .in_all = 0}), 2u);
  EXPECT_TRUE(IsClosed(0));
  EXPECT_TRUE(IsClosed(1));
}

TEST_P(CloseConnectionTest, ConnectionThatWasClosedIsNoExcess) {
  OpenConnections connections({port_});
  EXPECT_TRUE(connections.Close(Peer(1), port_));
  EXPECT_EQ(connections.CloseExcess(port_, {.of_address = 1, .in_all = 1}), 0u);
  EXPECT_FALSE(IsClosed(0));
}

TEST_P(CloseConnectionTest, CloserClosesTheConnectionWithAFlood) {
  closer_.Start({{port_, {.of_address = 2, .in_all = 2}}});
  closer_.CloseFlood(Peer(1), port_, "");
  EXPECT_EQ(AwaitClosed(), 1);
  EXPECT_FALSE(IsClosed(0));
}

TEST_P(CloseConnectionTest, CloserClosesConnectionsAboveTheLimits) {
  closer_.Start({{port_, {.of_address = 1, .in_all = 2}}});
  const int closed = AwaitClosed();
  ASSERT_GE(closed, 0);
  EXPECT_FALSE(IsClosed(1 - closed));
}

INSTANTIATE_TEST_SUITE_P(Families, CloseConnectionTest, ::testing::Values(AF_INET, AF_INET6));

}  // namespace
}  // namespace muster
