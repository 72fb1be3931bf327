#include "services/common/rpc/close_connection.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/base/unique_fd.h"

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

  bool bound_ = false;
  UniqueFd listener_;
  UniqueFd client_[2];
  UniqueFd server_[2];
  int port_ = 0;
};

TEST_P(CloseConnectionTest, OnlyTheConnectionOfThePeerIsClosed) {
  EXPECT_TRUE(CloseConnection(Peer(1), port_));
  EXPECT_FALSE(IsClosed(0));
  EXPECT_TRUE(IsClosed(1));
}

TEST_P(CloseConnectionTest, UnknownPeerOrOtherPortIsIgnored) {
  EXPECT_FALSE(CloseConnection("ipv4:192.0.2.1:4711", port_));
  EXPECT_FALSE(CloseConnection("unix:", port_));
  EXPECT_FALSE(CloseConnection(Peer(0), port_ - 1));
  EXPECT_FALSE(IsClosed(0));
}

TEST_P(CloseConnectionTest, ConnectionsAboveTheLimitOfTheirAddressAreClosed) {
  EXPECT_EQ(CloseExcessConnections(port_, {.of_address = 2, .in_all = 2}), 0u);
  EXPECT_EQ(CloseExcessConnections(port_, {.of_address = 1, .in_all = 2}), 1u);
  EXPECT_NE(IsClosed(0), IsClosed(1));
}

TEST_P(CloseConnectionTest, ConnectionsAboveTheLimitInAllAreClosed) {
  EXPECT_EQ(CloseExcessConnections(port_, {.of_address = 2, .in_all = 0}), 2u);
  EXPECT_TRUE(IsClosed(0));
  EXPECT_TRUE(IsClosed(1));
}

INSTANTIATE_TEST_SUITE_P(Families, CloseConnectionTest, ::testing::Values(AF_INET, AF_INET6));

}  // namespace
}  // namespace muster
