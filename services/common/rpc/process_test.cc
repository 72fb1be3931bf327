#include "services/common/rpc/process.h"

#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster {
namespace {

void LogAsGrpc(const char* text) {
  gpr_log_message("handshaker.cc", 1, GPR_LOG_SEVERITY_ERROR, text);
}

TEST(HandshakeFailureTest, ReasonIsReadFromTheLog) {
  const std::string start =
      "Handshake failed with fatal error SSL_ERROR_SSL: error:0A000086:SSL routines::";
  EXPECT_EQ(HandshakeFailure(start + "certificate verify failed."), "bad_certificate");
  EXPECT_EQ(HandshakeFailure(start + "peer did not return a certificate."), "no_certificate");
  EXPECT_EQ(HandshakeFailure(start + "no shared cipher."), "below_tls13");
  EXPECT_EQ(HandshakeFailure(start + "wrong version number."), "plaintext");
  EXPECT_EQ(HandshakeFailure(start + "tlsv1 alert unknown ca."), "refused_by_peer");
  EXPECT_EQ(HandshakeFailure(start + "bad length."), "other");
  EXPECT_EQ(HandshakeFailure("ipv4:1.2.3.4: certificate verify failed"), "");
}

TEST(ObserveFailedHandshakesTest, ObserverIsCalledUntilTheHandleIsDestroyed) {
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  RouteGrpcLog();
  std::vector<std::string> seen;
  auto handle =
      ObserveFailedHandshakes([&](std::string_view reason) { seen.emplace_back(reason); });
  LogAsGrpc("Handshake failed with fatal error SSL_ERROR_SSL: certificate verify failed.");
  LogAsGrpc("something else");
  handle.reset();
  LogAsGrpc("Handshake failed with fatal error SSL_ERROR_SSL: certificate verify failed.");
  EXPECT_EQ(seen, std::vector<std::string>{"bad_certificate"});
}

TEST(RouteGrpcLogTest, AddressThatCannotBeBoundIsNotLoggedTwice) {
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  RouteGrpcLog();
  ::testing::internal::CaptureStderr();
  LogAsGrpc("UNKNOWN:No address added out of total 1 resolved for '127.0.0.1:7440'");
  LogAsGrpc("CompletionQueue shutdown being shutdown before its server.");
  LogAsGrpc("assertion failed: false");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(log.find("No address"), std::string::npos);
  EXPECT_EQ(log.find("CompletionQueue"), std::string::npos);
  EXPECT_NE(log.find("assertion failed"), std::string::npos);
}

}  // namespace
}  // namespace muster
