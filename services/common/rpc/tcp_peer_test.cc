#include "services/common/rpc/tcp_peer.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(TcpPeerTest, TextOfGrpcIsParsed) {
  const TcpPeer v4 = ParseTcpPeer("ipv4:10.1.2.3:4711");
  EXPECT_EQ(v4.port, 4711);
  EXPECT_EQ(v4.address[12], 10);
  EXPECT_EQ(v4.address[11], 0xff);
  const TcpPeer v6 = ParseTcpPeer("ipv6:[2001:db8::1]:80");
  EXPECT_EQ(v6.port, 80);
  EXPECT_EQ(v6.address[0], 0x20);
  EXPECT_EQ(v6.address[15], 1);
  EXPECT_EQ(ParseTcpPeer("ipv6:%5B2001:db8::1%5D:80"), v6);
  EXPECT_EQ(ParseTcpPeer("ipv6:%5B2001:db8::1%25eth0%5D:80"), v6) << "with a zone";
  EXPECT_EQ(ParseTcpPeer("ipv6:[::ffff:10.1.2.3]:4711"), v4);
  for (const char* odd : {"", "unix:/tmp/x", "unix:", "ipv4:10.1.2.3", "ipv4:10.1.2.3:99999",
                          "ipv4:host:1", "ipv4:::1:80", "ipv6:[10.1.2.3]:80", "x"}) {
    EXPECT_EQ(ParseTcpPeer(odd).port, 0) << odd;
  }
}

}  // namespace
}  // namespace muster
