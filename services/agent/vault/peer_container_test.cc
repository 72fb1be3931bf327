#include "services/agent/vault/peer_container.h"

#include <sys/socket.h>

#include <array>
#include <string>

#include "gtest/gtest.h"
#include "services/common/base/unique_fd.h"

namespace muster {
namespace {

const std::string kId(64, 'a');

TEST(PeerContainerTest, CgroupsOfBothVersionsNameTheContainer) {
  EXPECT_TRUE(IsCgroupOf("12:pids:/docker/" + kId + "\n11:cpu:/\n", kId));
  EXPECT_TRUE(IsCgroupOf("0::/system.slice/docker-" + kId + ".scope\n", kId));
  EXPECT_TRUE(IsCgroupOf("0::/docker/" + kId + "/init", kId));
  EXPECT_TRUE(IsCgroupOf("1:name=systemd:/a/../" + kId, kId));
}

TEST(PeerContainerTest, OtherCgroupsDoNot) {
  const std::string other(64, 'b');
  EXPECT_FALSE(IsCgroupOf("", kId));
  EXPECT_FALSE(IsCgroupOf("0::/\n", kId));
  EXPECT_FALSE(IsCgroupOf("0::/docker/" + other + "\n", kId));
  EXPECT_FALSE(IsCgroupOf("0::/docker/x" + kId + "\n", kId));
  EXPECT_FALSE(IsCgroupOf("0::/docker/" + kId + "x\n", kId));
  EXPECT_FALSE(IsCgroupOf("0::/" + kId + ".scope\n", kId));
  EXPECT_FALSE(IsCgroupOf(kId + "\n", kId));
  EXPECT_FALSE(IsCgroupOf("0::/user.slice\n", ""));
  EXPECT_FALSE(IsCgroupOf("0::/a/b\n", "a"));
}

TEST(PeerContainerTest, ProcessOfThisMachineIsInNoContainer) {
  std::array<int, 2> pair = {};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  const UniqueFd one(pair[0]);
  const UniqueFd two(pair[1]);
  EXPECT_FALSE(IsPeerInContainer(one.get(), kId));
  EXPECT_FALSE(IsPeerInContainer(-1, kId));
}

}  // namespace
}  // namespace muster
