#include "services/common/rpc/channel_driver.h"

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "services/common/base/unique_fd.h"
#include "services/common/rpc/channel.h"

namespace muster {
namespace {

// A server without gRPC: a gRPC server in this process would handle the events of channels too.
class ChannelDriverTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    // gRPC would look for events every five seconds otherwise.
    setenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "0", 1);  // NOLINT: no threads yet
  }

  void SetUp() override {
    const timeval limit{.tv_sec = 30, .tv_usec = 0};
    ASSERT_EQ(setsockopt(listener_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);  // NOLINT: the socket API
    ASSERT_EQ(bind(listener_.get(), any, size), 0);
    ASSERT_EQ(listen(listener_.get(), 8), 0);
    ASSERT_EQ(getsockname(listener_.get(), any, &size), 0);
    target_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }

  // Returns the number of bytes that a client sends first.
  ssize_t AwaitBytes() {
    const UniqueFd connection(accept(listener_.get(), nullptr, nullptr));
    if (!connection.valid()) return -1;
    const timeval limit{.tv_sec = 30, .tv_usec = 0};
    setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    std::array<char, 64> bytes{};
    return recv(connection.get(), bytes.data(), bytes.size(), 0);
  }

  UniqueFd listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string target_;
};

TEST_F(ChannelDriverTest, ConnectionProceedsWithoutACall) {
  const auto channel = MakeChannel(target_, grpc::InsecureChannelCredentials());
  channel->GetState(/*try_to_connect=*/true);
  EXPECT_GT(AwaitBytes(), 0) << "no thread handles the events of the connection";
}

TEST_F(ChannelDriverTest, DriverStartsAgainAfterTheLastChannel) {
  for (int i = 0; i < 20; ++i) {
    const auto channel = MakeChannel(target_, grpc::InsecureChannelCredentials());
    channel->GetState(/*try_to_connect=*/true);
    ASSERT_GT(AwaitBytes(), 0);
  }
}

// In a separate process, since it cannot be undone.
TEST(LeaveEventsToServerDeathTest, LaterChannelsHaveNoDriver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto has_driver = [] {
    const auto channel = grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials());
    const auto kept = KeepDriven(channel);
    return kept.owner_before(channel) || channel.owner_before(kept);
  };
  EXPECT_EXIT(
      {
        const bool before = has_driver();
        LeaveEventsToServer();
        _exit(before && !has_driver() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(ChannelDriverTest, OneDriverServesTheProcess) {
  const auto driver = ChannelDriver::Get();
  EXPECT_EQ(driver, ChannelDriver::Get());
}

}  // namespace
}  // namespace muster
