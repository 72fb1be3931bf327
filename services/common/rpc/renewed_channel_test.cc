#include "services/common/rpc/renewed_channel.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>

namespace muster {
namespace {

// Connects to a port that refuses, and returns the state afterwards.
grpc_connectivity_state FailToConnect(grpc::Channel& channel) {
  const auto end = std::chrono::system_clock::now() + std::chrono::seconds(30);
  grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
  while (state != GRPC_CHANNEL_TRANSIENT_FAILURE && channel.WaitForStateChange(state, end)) {
    state = channel.GetState(/*try_to_connect=*/true);
  }
  return state;
}

class RenewedChannelTest : public ::testing::Test {
 protected:
  RenewedChannel channel_{"127.0.0.1:1", grpc::InsecureChannelCredentials()};
};

TEST_F(RenewedChannelTest, IdleChannelIsKept) {
  const auto before = channel_.Get();
  channel_.RenewIfBroken();
  EXPECT_EQ(channel_.Get(), before);
}

TEST_F(RenewedChannelTest, ChannelThatCannotConnectIsReplaced) {
  const auto before = channel_.Get();
  ASSERT_EQ(FailToConnect(*before), GRPC_CHANNEL_TRANSIENT_FAILURE);
  channel_.RenewIfBroken();
  const auto after = channel_.Get();
  EXPECT_NE(after, before);
  EXPECT_EQ(after->GetState(/*try_to_connect=*/false), GRPC_CHANNEL_IDLE);
}

}  // namespace
}  // namespace muster
