#include "services/common/tunnel/tunnel_endpoint.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/unique_fd.h"
#include "services/common/tunnel/testing/tunnel_server.h"
#include "services/common/tunnel/tunnel_status.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr size_t kUnixAbstract = std::string_view("unix-abstract:").size();

class TunnelEndpointTest : public ::testing::Test {
 protected:
  void Start(TunnelServerScript script, TunnelOptions options = {}) {
    server_ = TunnelServer::Start(std::move(script));
    options.gateway = {"wss://127.0.0.1", server_->port()};
    options.path = "/tunnel/relay";
    endpoint_ = TunnelEndpoint::Start(std::move(options)).value();
  }
  void StartWithProxy(TunnelServerScript script, const std::string& credentials) {
    server_ = TunnelServer::Start(std::move(script));
    TunnelOptions options;
    options.gateway = {"wss://gateway.invalid", 8002};  // the proxy would find it
    options.path = "/tunnel/join";
    options.proxy = TunnelProxy{"127.0.0.1", std::to_string(server_->port()), credentials};
    endpoint_ = TunnelEndpoint::Start(std::move(options)).value();
  }

  // Connects to the endpoint, as gRPC does.
  UniqueFd Connect() const {
    const std::string name = endpoint_->target().substr(kUnixAbstract);
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    return fd;
  }
  TunnelStatus Status() const { return FindTunnelStatus(endpoint_->target()).value(); }

  // Reads until `size` bytes have arrived, or the end.
  static std::string Read(const UniqueFd& fd, size_t size) {
    std::string content;
    std::array<char, 65536> piece{};
    while (content.size() < size) {
      const ssize_t n = read(fd.get(), piece.data(), std::min(piece.size(), size - content.size()));
      if (n <= 0) break;
      content.append(piece.data(), static_cast<size_t>(n));
    }
    return content;
  }
  static bool Write(const UniqueFd& fd, std::string_view content) {
    while (!content.empty()) {
      const ssize_t n = send(fd.get(), content.data(), content.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      content.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // Returns the fault of a connection that is not established.
  std::string FaultOfConnection() const {
    const UniqueFd fd = Connect();
    EXPECT_EQ(Read(fd, 1), "");
    return Status().fault;
  }

  std::unique_ptr<TunnelServer> server_;
  std::unique_ptr<TunnelEndpoint> endpoint_;
};

TEST_F(TunnelEndpointTest, BytesPassInBothDirections) {
  Start({});
  std::string content;
  for (int i = 0; content.size() < size_t{3} << 20; ++i) content += std::to_string(i);
  const UniqueFd fd = Connect();
  std::thread writer([&] { EXPECT_TRUE(Write(fd, content)); });
  EXPECT_TRUE(Read(fd, content.size()) == content);
  writer.join();
  EXPECT_EQ(server_->upgrade_target(), "/tunnel/relay");
  EXPECT_EQ(Status().fault, "");
  EXPECT_EQ(Status().way, "without a proxy");
  EXPECT_EQ(Status().address, "wss://127.0.0.1:" + std::to_string(server_->port()));
}

TEST_F(TunnelEndpointTest, ConnectionsAreSeparate) {
  Start({});
  const UniqueFd one = Connect();
  const UniqueFd two = Connect();
  EXPECT_TRUE(Write(one, "1"));
  EXPECT_TRUE(Write(two, "2"));
  EXPECT_EQ(Read(two, 1), "2");
  EXPECT_EQ(Read(one, 1), "1");
}

TEST_F(TunnelEndpointTest, UnknownIssuerIsReported) {
  Start({});
  const UniqueFd fd = Connect();
  EXPECT_TRUE(Write(fd, "x"));
  EXPECT_EQ(Read(fd, 1), "x");
  EXPECT_EQ(Status().trust, "TLS not verified: issued by /CN=inspection");
}

TEST_F(TunnelEndpointTest, RootOfTheFleetIsRecognised) {
  server_ = TunnelServer::Start({});
  TunnelOptions options;
  options.gateway = {"wss://127.0.0.1", server_->port()};
  options.path = "/tunnel/relay";
  options.fleet_root_pem = server_->certificate_pem();
  endpoint_ = TunnelEndpoint::Start(std::move(options)).value();
  const UniqueFd fd = Connect();
  EXPECT_TRUE(Write(fd, "x"));
  EXPECT_EQ(Read(fd, 1), "x");
  EXPECT_EQ(Status().trust, "TLS verified by the root of the fleet");
}

TEST_F(TunnelEndpointTest, ProxyIsAskedWithItsPassword) {
  StartWithProxy({.connect = "HTTP/1.1 200 Connection established\r\nVia: 1.1 proxy\r\n\r\n"},
                 "me:secret");
  const UniqueFd fd = Connect();
  EXPECT_TRUE(Write(fd, "x"));
  EXPECT_EQ(Read(fd, 1), "x");
  EXPECT_THAT(server_->connect_head(), StartsWith("CONNECT gateway.invalid:8002 HTTP/1.1\r\n"));
  EXPECT_THAT(server_->connect_head(), HasSubstr("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"));
  EXPECT_EQ(server_->upgrade_target(), "/tunnel/join");
  EXPECT_EQ(Status().way, "through the proxy 127.0.0.1:" + std::to_string(server_->port()));
}

TEST_F(TunnelEndpointTest, RefusalOfTheProxyIsReportedWithoutThePassword) {
  StartWithProxy({.connect = "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"}, "me:secret");
  const std::string fault = FaultOfConnection();
  EXPECT_THAT(fault, StartsWith("the proxy answers with HTTP status 407 (through the proxy "));
  EXPECT_THAT(fault, ::testing::Not(HasSubstr("secret")));
}

TEST_F(TunnelEndpointTest, ProxyThatSendsBytesAfterItsAnswerIsRefused) {
  StartWithProxy({.connect = "HTTP/1.1 200 OK\r\n\r\nhello"}, "");
  EXPECT_THAT(FaultOfConnection(), StartsWith("the proxy sends more than its answer"));
}

TEST_F(TunnelEndpointTest, AnswerOfTheProxyIsBounded) {
  StartWithProxy({.connect = "HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n"},
                 "");
  EXPECT_THAT(FaultOfConnection(), StartsWith("cannot read the answer of the proxy"));
}

TEST_F(TunnelEndpointTest, AnswerOfTheGatewayIsReported) {
  const std::string body = R"({"code":"RESOURCE_EXHAUSTED","reason":"TOO_MANY_TUNNELS"})";
  Start({.decline = "HTTP/1.1 429 Too Many Requests\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body});
  EXPECT_EQ(FaultOfConnection(),
            "the gateway, or a proxy before it, answers with HTTP status 429 (TOO_MANY_TUNNELS) "
            "(without a proxy)");
}

TEST_F(TunnelEndpointTest, OtherSubprotocolIsRefused) {
  Start({.subprotocol = "chat"});
  EXPECT_THAT(FaultOfConnection(), StartsWith("the server does not speak muster.tunnel.v1"));
}

TEST_F(TunnelEndpointTest, SilentServerIsGivenUp) {
  Start({.silent = true}, {.establish_within = absl::Milliseconds(50)});
  EXPECT_THAT(FaultOfConnection(), HasSubstr("timed out"));
}

TEST_F(TunnelEndpointTest, TextEndsTheConnection) {
  Start({.text = true});
  const UniqueFd fd = Connect();
  EXPECT_TRUE(Write(fd, "x"));
  EXPECT_EQ(Read(fd, 1), "");
}

TEST_F(TunnelEndpointTest, EndOfTheServerEndsTheConnection) {
  Start({.end_at_once = true});
  EXPECT_EQ(Read(Connect(), 1), "");
}

TEST_F(TunnelEndpointTest, EndOfTheCallerClosesTheWebSocket) {
  Start({});
  {
    const UniqueFd fd = Connect();
    EXPECT_TRUE(Write(fd, "x"));
    EXPECT_EQ(Read(fd, 1), "x");
  }
  while (server_->close_code() == 0) std::this_thread::yield();
  EXPECT_EQ(server_->close_code(), 1000);
}

// A gateway that is lost without a word.
TEST_F(TunnelEndpointTest, ServerThatAnswersNoPingIsGivenUp) {
  Start({.deaf = true}, {.idle = absl::Milliseconds(200)});
  const UniqueFd fd = Connect();
  EXPECT_TRUE(Write(fd, "x"));
  EXPECT_EQ(Read(fd, 1), "");
}

// A caller that does not read stops the server: only the buffers of the kernel fill up.
TEST_F(TunnelEndpointTest, SlowCallerStopsTheServer) {
  Start({.endless = true}, {.idle = absl::Seconds(1)});
  const UniqueFd fd = Connect();
  while (server_->ended() == 0) std::this_thread::yield();  // the tunnel ends as idle
  EXPECT_GT(server_->sent(), 0U);
  EXPECT_LT(server_->sent(), size_t{64} << 20);
}

TEST_F(TunnelEndpointTest, OtherProcessIsRefused) {
  Start({});
  const pid_t child = fork();
  if (child == 0) {  // only system calls
    const UniqueFd fd = Connect();
    char byte = 0;
    (void)send(fd.get(), "x", 1, MSG_NOSIGNAL);
    _exit(read(fd.get(), &byte, 1) == 1 ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "it got an answer";
}

TEST_F(TunnelEndpointTest, ConnectionsAreBounded) {
  Start({.silent = true});
  std::vector<UniqueFd> all;
  for (size_t i = 0; i < kMaxTunnelConnections; ++i) all.push_back(Connect());
  EXPECT_THAT(FaultOfConnection(), HasSubstr("256 tunnels"));
}

TEST(TunnelStatusTest, StatusIsFoundByTheNameInAText) {
  SetTunnelStatus("muster-tunnel-0123", TunnelStatus{.address = "wss://a:1"});
  EXPECT_EQ(FindTunnelStatus("unix-abstract:muster-tunnel-0123: closed")->address, "wss://a:1");
  EXPECT_FALSE(FindTunnelStatus("muster-tunnel-012"));
  EXPECT_FALSE(FindTunnelStatus("unix-abstract:other"));
  SetTunnelStatus("muster-tunnel-0123", std::nullopt);
  EXPECT_FALSE(FindTunnelStatus("muster-tunnel-0123"));
}

}  // namespace
}  // namespace muster
