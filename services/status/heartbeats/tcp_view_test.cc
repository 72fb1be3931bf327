#include "services/status/heartbeats/tcp_view.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "testing/fixtures/await.h"

namespace muster {
namespace {

using Sent = TcpState::Sent;

constexpr char kAddress[] = "ipv4:127.0.0.1:";

uint16_t LocalPort(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

// Drops all packets for this socket, as a lost network would.
void CutOff(int fd) {
  sock_filter drop_all = {BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog program = {1, &drop_all};
  ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0)
      << std::strerror(errno);
}

// A listening socket as gRPC opens one, and connections to it over IPv4.
class TcpViewTest : public ::testing::TestWithParam<int> {
 protected:
  struct Connection {
    UniqueFd here;
    UniqueFd there;
    TcpPeer peer;
  };

  void SetUp() override {
    listener_ = UniqueFd(socket(GetParam(), SOCK_STREAM, 0));
    sockaddr_in6 v6 = {};
    v6.sin6_family = AF_INET6;
    sockaddr_in v4 = {};
    v4.sin_family = AF_INET;
    const auto* address = GetParam() == AF_INET6 ? reinterpret_cast<sockaddr*>(&v6)
                                                 : reinterpret_cast<sockaddr*>(&v4);
    ASSERT_EQ(bind(listener_.get(), address, GetParam() == AF_INET6 ? sizeof(v6) : sizeof(v4)), 0);
    ASSERT_EQ(listen(listener_.get(), 300), 0);
    port_ = LocalPort(listener_.get());
    auto view = TcpView::Open();
    ASSERT_TRUE(view.ok()) << view.status();
    view_.emplace(*std::move(view));
  }

  Connection Connect() {
    Connection connection;
    connection.there = UniqueFd(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port_);
    EXPECT_EQ(
        connect(connection.there.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    connection.here = UniqueFd(accept(listener_.get(), nullptr, nullptr));
    connection.peer = ParseTcpPeer(kAddress + std::to_string(LocalPort(connection.there.get())));
    return connection;
  }

  TcpState Query(const TcpPeer& peer) {
    const auto states = view_->Query(port_, {peer});
    EXPECT_TRUE(states.ok()) << states.status();
    return states.ok() ? states->at(0) : TcpState{};
  }

  // Waits until the system reports `sent` for the connection, and returns its state.
  TcpState AwaitSight(const TcpPeer& peer, Sent sent) {
    TcpState state;
    testing::Await([&] {
      state = Query(peer);
      return state.sent == sent;
    });
    EXPECT_EQ(state.sent, sent);
    return state;
  }

  UniqueFd listener_;
  uint16_t port_ = 0;
  std::optional<TcpView> view_;
};

INSTANTIATE_TEST_SUITE_P(Families, TcpViewTest, ::testing::Values(AF_INET6, AF_INET));

TEST_P(TcpViewTest, ASilentProcessThatStillRunsAcknowledges) {
  const Connection connection = Connect();
  ASSERT_EQ(send(connection.here.get(), "probe", 5, 0), 5);
  const TcpState state = AwaitSight(connection.peer, Sent::kAcknowledged);
  EXPECT_FALSE(state.ended_here);
}

TEST_P(TcpViewTest, AMachineThatIsCutOffDoesNotAcknowledge) {
  const Connection connection = Connect();
  CutOff(connection.there.get());
  ASSERT_EQ(send(connection.here.get(), "probe", 5, 0), 5);
  const TcpState state = AwaitSight(connection.peer, Sent::kUnacknowledged);
  EXPECT_FALSE(state.ended_here);
}

TEST_P(TcpViewTest, AClosedConnectionIsNotThere) {
  Connection connection = Connect();
  connection.there.reset();
  pollfd readable = {connection.here.get(), POLLIN, 0};
  ASSERT_EQ(poll(&readable, 1, 10'000), 1);  // the end has come
  EXPECT_EQ(Query(connection.peer).sent, Sent::kUnknown);
}

TEST_P(TcpViewTest, AConnectionThatOurSideEndedIsTold) {
  Connection connection = Connect();
  connection.here.reset();
  const TcpState state = AwaitSight(connection.peer, Sent::kAcknowledged);
  EXPECT_TRUE(state.ended_here);
}

TEST_P(TcpViewTest, EachOfManyPeersGetsItsOwnAnswer) {
  std::vector<Connection> connections;
  std::vector<TcpPeer> peers;
  for (int i = 0; i < 300; ++i) {
    connections.push_back(Connect());
    peers.push_back(connections.back().peer);
  }
  connections[7].there.reset();
  connections[299].there.reset();
  pollfd readable = {connections[299].here.get(), POLLIN, 0};
  ASSERT_EQ(poll(&readable, 1, 10'000), 1);
  const auto states = view_->Query(port_, peers);
  ASSERT_TRUE(states.ok()) << states.status();
  for (size_t i = 0; i < peers.size(); ++i) {
    EXPECT_EQ(states->at(i).sent, i == 7 || i == 299 ? Sent::kUnknown : Sent::kAcknowledged) << i;
  }
}

TEST_P(TcpViewTest, APeerOfAnotherPortIsNotOurs) {
  const Connection connection = Connect();
  const auto states = view_->Query(1, {connection.peer});
  ASSERT_TRUE(states.ok()) << states.status();
  EXPECT_EQ(states->at(0).sent, Sent::kUnknown);
}

}  // namespace
}  // namespace muster
