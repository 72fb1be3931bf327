#include "services/common/rpc/connection_error.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/tunnel/tunnel_status.h"

namespace muster {
namespace {

class ConnectionErrorTest : public ::testing::Test {
 protected:
  void SetUp() override { Clear(); }
  void TearDown() override { Clear(); }

  static void Clear() {
    for (const char* name :
         {"grpc_proxy", "https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY"}) {
      unsetenv(name);
    }
  }

  // Returns the reason and the message of a failed connection.
  static std::string Plain(const std::string& cause) {
    const absl::Status status =
        ConnectionErrorOf(absl::StrCat("failed to connect to all addresses; last error: ", cause));
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_NE(NextStepOf(status), "");
    return absl::StrCat(ReasonOf(status), ": ", status.message());
  }
};

TEST_F(ConnectionErrorTest, ConnectionWithoutAnswersToPingsIsLost) {
  const absl::Status status = ConnectionErrorOf("keepalive watchdog timeout");
  EXPECT_EQ(ReasonOf(status), "UNREACHABLE");
  EXPECT_EQ(status.message(), "the connection was lost: the other side has stopped to answer");
  EXPECT_NE(NextStepOf(status), "");
  EXPECT_FALSE(IsUnconnected(status)) << "calls on the connection may have taken effect";
}

TEST_F(ConnectionErrorTest, AddressOfTheProxyIsNamedAsSuch) {
  setenv("https_proxy", "http://me:secret@127.0.0.1:3128/", 1);
  EXPECT_EQ(
      Plain("UNKNOWN: ipv4:127.0.0.1:3128: Failed to connect to remote host: Connection refused"),
      "PROXY_FAILED: cannot connect through the proxy 127.0.0.1:3128: Connection refused");
  EXPECT_EQ(Plain("UNKNOWN: HTTP proxy returned response code 503"),
            "PROXY_FAILED: cannot connect through the proxy 127.0.0.1:3128: it answers with HTTP "
            "status 503");
  EXPECT_EQ(
      Plain("UNKNOWN: ipv4:10.0.0.5:7440: Failed to connect to remote host: Connection refused"),
      "UNREACHABLE: cannot connect to 10.0.0.5:7440: Connection refused");
}

TEST_F(ConnectionErrorTest, AddressIsShownAsItWasGiven) {
  EXPECT_EQ(Plain("UNAVAILABLE: ipv6:%5B::1%5D:7440: Failed to connect to remote host: No route "
                  "to host"),
            "UNREACHABLE: cannot connect to [::1]:7440: No route to host");
}

TEST_F(ConnectionErrorTest, ConnectionThatWasLostIsDistinguished) {
  const absl::Status lost = ConnectionErrorOf("Socket closed");
  EXPECT_EQ(lost.message(), "Socket closed");
  EXPECT_FALSE(IsUnconnected(lost));
  EXPECT_TRUE(IsConnectionError(ReasonOf(lost)));
  EXPECT_TRUE(IsUnconnected(
      ConnectionErrorOf("failed to connect to all addresses; last error: UNKNOWN: "
                        "ipv4:10.0.0.5:7440: Failed to connect to remote host: Connection "
                        "refused")));
  EXPECT_FALSE(IsConnectionError("OVERLOADED"));
}

TEST_F(ConnectionErrorTest, ProxyWithAHostNameIsRecognisedByItsPort) {
  setenv("https_proxy", "proxy.example.org:3128", 1);
  EXPECT_EQ(
      Plain("UNKNOWN: ipv4:10.0.0.7:3128: Failed to connect to remote host: Connection refused"),
      "PROXY_FAILED: cannot connect through the proxy 10.0.0.7:3128: Connection refused");
}

// A peer may send any text as the message of its status.
TEST_F(ConnectionErrorTest, TextOfAPeerInTheWordsOfGrpcIsKept) {
  for (const char* text : {"DNS resolution failed for ", "DNS resolution failed for a:1",
                           "last error: ", "last error: UNKNOWN: ipv4:"}) {
    EXPECT_EQ(ReasonOf(ConnectionErrorOf(text)), "UNREACHABLE") << text;
  }
  for (const char* text : {"DNS resolution failed for a:1", "DNS resolution failed for a:1: ",
                           "last error: ", "last error: UNKNOWN: ipv4:127.0.0.1:1: "}) {
    EXPECT_EQ(ConnectionErrorOf(text).message(), text);
  }
}

TEST_F(ConnectionErrorTest, UnknownHostOfTheProxyIsNamedAsSuch) {
  setenv("https_proxy", "http://proxy.invalid:3128", 1);
  const absl::Status status = ConnectionErrorOf(
      "DNS resolution failed for proxy.invalid:3128: C-ares status is not ARES_SUCCESS "
      "qtype=AAAA name=proxy.invalid is_balancer=0: Domain name not found");
  EXPECT_EQ(ReasonOf(status), "PROXY_FAILED");
  EXPECT_EQ(status.message(),
            "cannot find the address of the proxy proxy.invalid:3128: Domain name not found");
}

TEST_F(ConnectionErrorTest, UnknownHostIsNamedWithoutWordsOfTheResolver) {
  const absl::Status status = ConnectionErrorOf(
      "DNS resolution failed for nowhere.invalid:7440: C-ares status is not ARES_SUCCESS "
      "qtype=AAAA name=nowhere.invalid is_balancer=0: Domain name not found");
  EXPECT_EQ(status.message(),
            "cannot find the address of nowhere.invalid:7440: Domain name not found");
  EXPECT_EQ(ReasonOf(status), "UNREACHABLE");
  EXPECT_TRUE(IsUnconnected(status));
}

TEST_F(ConnectionErrorTest, RefusedCertificateHasItsOwnReason) {
  EXPECT_EQ(Plain("UNKNOWN: ipv4:127.0.0.1:7440: Tls handshake failed: SSL_ERROR_SSL: "
                  "error:0A000086:SSL routines::certificate verify failed"),
            "SERVER_CERTIFICATE_REFUSED: the certificate of the server at 127.0.0.1:7440 is "
            "refused: it is of another fleet, or not valid now");
  EXPECT_EQ(Plain("UNKNOWN: ipv4:127.0.0.1:7443: Custom verification check failed with error: "
                  "UNAUTHENTICATED: the server is x, which is not the service that was wanted"),
            "SERVER_CERTIFICATE_REFUSED: the certificate of the server at 127.0.0.1:7443 is "
            "refused: the server is x, which is not the service that was wanted");
}

TEST_F(ConnectionErrorTest, OnlyALoopbackAddressIsOfThisMachine) {
  EXPECT_TRUE(IsRefusedByThisMachine("cannot connect to 127.0.0.1:7440: Connection refused"));
  EXPECT_TRUE(IsRefusedByThisMachine("cannot connect to [::1]:7440: Connection refused"));
  EXPECT_FALSE(IsRefusedByThisMachine("cannot connect to 192.0.2.2:7440: Connection refused"));
  EXPECT_FALSE(IsRefusedByThisMachine("cannot connect to 127.0.0.1:7440: No route to host"));
  EXPECT_FALSE(
      IsRefusedByThisMachine("cannot connect through the proxy 127.0.0.1:3: Connection refused"));
}

// The texts are those of gRPC 1.51 with a server of nginx and of Go, and with one of TLS 1.2.
TEST_F(ConnectionErrorTest, HandshakeWithoutHttp2AllowsATunnel) {
  for (const char* cause : {"Ssl handshake failed: SSL_ERROR_SSL: "
                            "error:0A000460:SSL routines::tlsv1 alert no application protocol",
                            "Cannot check peer: missing selected ALPN property.",
                            "Ssl handshake failed: SSL_ERROR_SSL: "
                            "error:0A00042E:SSL routines::tlsv1 alert protocol version"}) {
    const absl::Status status = ConnectionErrorOf(absl::StrCat(
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.5:7445: ", cause));
    EXPECT_EQ(ReasonOf(status), "HTTP2_REFUSED") << cause;
    EXPECT_EQ(status.message(), "the TLS handshake with 10.0.0.5:7445 ended without HTTP/2");
    EXPECT_TRUE(AllowsTunnel(status) && IsUnconnected(status)) << cause;
  }
}

TEST_F(ConnectionErrorTest, OnlyWhatAProxyMayHaveCausedAllowsATunnel) {
  setenv("https_proxy", "http://127.0.0.1:3128/", 1);
  const auto allows = [](const std::string& cause) {
    return AllowsTunnel(ConnectionErrorOf(
        absl::StrCat("failed to connect to all addresses; last error: UNKNOWN: ", cause)));
  };
  EXPECT_TRUE(allows("HTTP proxy returned response code 403"));
  EXPECT_TRUE(allows("ipv4:10.0.0.5:7445: Ssl handshake failed: certificate verify failed"));
  EXPECT_FALSE(allows("HTTP proxy returned response code 407"));
  EXPECT_FALSE(allows("HTTP proxy returned response code 503"));
  EXPECT_FALSE(allows("ipv4:10.0.0.5:7445: Failed to connect to remote host: Connection refused"));
  EXPECT_FALSE(AllowsTunnel(absl::UnavailableError("no HTTP/2: no application protocol")));
}

TEST_F(ConnectionErrorTest, FailedTunnelIsNamedWithItsFault) {
  SetTunnelStatus("muster-tunnel-00ff", TunnelStatus{.address = "wss://gateway.example:8002",
                                                     .fault = "HTTP status 502"});
  EXPECT_EQ(Plain("UNAVAILABLE: unix-abstract:muster-tunnel-00ff: Socket closed"),
            "TUNNEL_FAILED: cannot connect through the tunnel wss://gateway.example:8002: HTTP "
            "status 502");
  SetTunnelStatus("muster-tunnel-00ff", std::nullopt);
}

}  // namespace
}  // namespace muster
